//! Queries and changes of a scenario for other programs.

use std::sync::Arc;

use anabranch_cc::Settings;

use super::Scenario;
use super::transport::Transport;
use crate::diagnostic::suggestion;
use crate::own::{Faults, Maker, OwnLaw};
use crate::series::{FLOW_SERIES, LINK_SERIES, PATH_SERIES, STREAM_SERIES};

impl Scenario {
    /// Names of its flows, in the order of the file.
    pub fn flow_names(&self) -> impl Iterator<Item = &str> {
        self.flows.iter().map(|flow| flow.id.as_str())
    }

    /// The names of the series that a run may have: of each flow, of its streams if there are several, of its paths if there are
    /// several, and of each link. Not every transport has every series; [`Trace::lookup`](crate::run::Trace::lookup) fails for the others.
    pub fn series_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for flow in &self.flows {
            let id = &flow.id;
            names.extend(FLOW_SERIES.iter().map(|series| format!("flow.{id}.{}", series.name)));
            let streams: Vec<u8> = (1..=u8::MAX).take_while(|&stream| flow.transport.has_stream(stream)).collect();
            if streams.len() > 1 {
                let of = |stream| STREAM_SERIES.iter().map(move |it| format!("flow.{id}.stream.{stream}.{}", it.name));
                names.extend(streams.into_iter().flat_map(of));
            }
            if flow.paths.len() > 1 {
                let of = |path| PATH_SERIES.iter().map(move |it| format!("flow.{id}.path.{path}.{}", it.name));
                names.extend((1..=flow.paths.len()).flat_map(of));
            }
        }
        let of_link =
            |link: &anabranch_sim::Wire| LINK_SERIES.iter().map(|it| format!("link.{}.{}", link.id, it.name)).collect();
        names.extend(self.links.iter().flat_map(|link| -> Vec<String> { of_link(link) }));
        names
    }

    /// Replaces the law of a flow of our own transport; reports call the new law `name`.
    ///
    /// # Errors
    /// If there is no such flow, or it has an agent of ns-2, which has its own law.
    pub fn set_law(&mut self, flow: &str, name: &str, law: Settings) -> Result<(), String> {
        let known: Vec<String> = self.flow_names().map(str::to_owned).collect();
        let Some(found) = self.flows.iter_mut().find(|other| other.id == flow) else {
            let suggestion = suggestion(flow, known.iter().map(String::as_str));
            return Err(format!("no flow is called `{flow}`; {suggestion}"));
        };
        let Transport::Engine { config, .. } = &mut found.transport else {
            let transport = &found.transport_name;
            return Err(format!(
                "flow `{flow}` is driven by `{transport}`, whose law is its own; set `transport = \"anabranch\"` there"
            ));
        };
        config.law = law;
        found.own = None;
        found.law_name = Some(name.to_owned());
        Ok(())
    }

    /// Replaces the law of a flow of our own transport by a law of the calling program.
    ///
    /// # Errors
    /// As [`Scenario::set_law`].
    pub fn set_own(&mut self, flow: &str, maker: &Arc<dyn Maker>) -> Result<(), String> {
        self.set_law(flow, maker.name(), maker.settings("", &Faults::default()))?;
        for found in self.flows.iter_mut().filter(|other| other.id == flow) {
            found.own = Some(OwnLaw::Made(Arc::clone(maker)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anabranch_cc::registry;

    use super::*;
    use crate::document::Document;

    const TWO: &str = "duration = '1s'\n\
        [[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '1Mbit/s'\ndelay = '10ms'\n\
        queue = { kind = 'drop_tail', packets = 10 }\n\
        [[flow]]\nid = 'f0'\nfrom = 'a'\nto = 'b'\ntransport = 'anabranch'\npacket = '1500B'\nstreams = 2\n\
        [[flow]]\nid = 'f1'\nfrom = 'a'\nto = 'b'\ntransport = 'ns2/sack'\npacket = '1500B'\n";

    fn scenario() -> Scenario {
        Scenario::parse(&Document::parse("two.toml", TWO).unwrap()).unwrap()
    }

    #[test]
    fn every_name_is_that_of_a_series() {
        let scenario = scenario();
        let names = scenario.series_names();
        assert!(names.iter().all(|name| scenario.check_series(name).is_ok()), "{names:?}");
        for name in
            ["flow.f0.window", "flow.f0.stream.2.goodput", "flow.f1.rtt", "link.l.queue", "link.l.reverse.drops"]
        {
            assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains(".stream.3.") || name.contains("f1.stream")), "{names:?}");
    }

    #[test]
    fn a_law_can_be_put_under_our_own_transport_alone() {
        let law = || Settings::default_for(registry::find("reno").unwrap());
        let mut scenario = scenario();
        scenario.set_law("f0", "mine", law()).unwrap();
        assert_eq!(crate::run::run(&scenario).unwrap().flows[0].cc.as_deref(), Some("mine"));
        let error = scenario.set_law("f1", "mine", law()).unwrap_err();
        assert!(error.contains("ns2/sack") && error.contains("transport = \"anabranch\""), "{error}");
        assert_eq!(scenario.set_law("f2", "mine", law()).unwrap_err(), "no flow is called `f2`; did you mean `f0`?");
    }
}
