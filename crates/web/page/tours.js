// The guided tours: five steps for each paper. A step opens a scenario of the repository in one or two variants, asks, and cites what the paper says.

const step = (title, text, ask, cite, file, variants, view) => ({ title, text, ask, cite, file, variants, view });

const MFAST = (name) => `experiments/mfast-2019/${name}.toml`;
const EMFAST = (name) => `experiments/emfast-2019/${name}.toml`;
const MULTIHOMING = (name) => `experiments/multihoming-2010/${name}.toml`;
const CTCP = (name) => `experiments/ctcp-2019/${name}.toml`;
const RRFAST = (name) => `experiments/rrfast-2017/${name}.toml`;

const TOURS = [
  {
    key: "mfast-2019",
    title: "MFast TCP: streams in one connection",
    steps: [
      step("A path without losses", "One flow over a bottleneck of 1.5 Mbit/s with a queue of ten packets: SCTP, which probes for losses, beside FAST, which listens to the delay.", "Which of the two queues is calm, and who delivers more?", "mfast-2019, section V.E.1: Packet loss causes performance degradation for SCTP", MFAST("table2"), [["SCTP"], ["Fast TCP (8, 2)"]]),
      step("One packet is lost", "At 38.93 s the bottleneck loses one packet. FAST and MFast send the same packets at the same times; only their receivers differ.", "What does the application get between 39.1 and 39.4 s?", "mfast-2019, section V.E.3: completely stops the data delivery to the application layer", MFAST("fig6"), [["Fast TCP"], ["MFast TCP"]], [38, 42]),
      step("Head-of-line blocking", "Look at the packets that the receiver holds. FAST holds all that come behind the lost one; MFast those of one of its five streams.", "How many times fewer does MFast hold?", "mfast-2019, section V.E.4: HoLB occurs on the receiver end at 39.07", MFAST("fig8"), [["Fast TCP"], ["MFast TCP"]], [38.8, 39.8]),
      step("Stream by stream", "The goodput of each of the five streams around the loss.", "Which stream stops, and do the others notice?", "mfast-2019, section V.E.5: the remaining streams continue to transfer to the application", MFAST("fig9"), [[]], [38, 41]),
      step("A larger network", "The same loss where ten times as much is on its way.", "Does MFast gain more there?", "mfast-2019, section V.E.5: networks having large bandwidth or large RTT can benefit more from MFast TCP compared to networks with small bandwidth", MFAST("larger"), [["Fast TCP", "ten times the bandwidth"], ["MFast TCP", "ten times the bandwidth"]], [35, 45]),
    ],
  },
  {
    key: "emfast-2019",
    title: "EMFast TCP: full speed after a loss",
    steps: [
      step("One fast recovery", "Reno sends a first window of 40 packets, of which the first is lost. Every packet behind it is answered by a duplicate.", "What is in flight when the recovery ends?", "emfast-2019, section 2: there is exactly N/2 outstanding segments", EMFAST("recovery"), [[]]),
      step("After the recovery", "MFast halves its window at a loss at 38 s and then climbs back slowly. EMFast knows that the path was full, and refills it.", "Who is back first?", "emfast-2019, section 5.1: in 9 RTT, as shown in Figure 10", EMFAST("fig4"), [["MFast TCP"], ["EMFast TCP"]], [36, 46]),
      step("Alone on the path", "FAST beside EMFast, over the whole run.", "By how much does the window fall, and for how long?", "emfast-2019, section 5.1: 29% less time compared to the Fast TCP and MFast TCP", EMFAST("one-flow"), [["Fast TCP"], ["EMFast TCP"]]),
      step("Losses now and then", "One packet in a thousand is lost.", "What does a quick refill gain over a hundred seconds?", "emfast-2019, section 5.1: CCaFR improves the performance of the protocol in a network where there is a high loss rate", EMFAST("loss-rate"), [["MFast TCP", "0.001"], ["EMFast TCP", "0.001"]]),
      step("Beside four New Reno flows", "The network as printed. New Reno fills the queue; delay-based laws give way.", "Does the refill help when others take the room?", "emfast-2019, section 5.3: EMFast TCP further improves the performance, as compared to MFast TCP", EMFAST("four-flows"), [["Fast TCP, alpha 8", "as printed"], ["EMFast TCP, alpha 8", "as printed"]]),
    ],
  },
  {
    key: "multihoming-2010",
    title: "FAST multihoming: several paths at once",
    steps: [
      step("SCTP on a fast link", "Four SCTP flows join one after the other on 80 Mbit/s.", "What happens in the queue whenever one joins?", "multihoming-2010, section II.A: use progressively more buffers in the router until they lose packets by overflowing the bottleneck queue", MULTIHOMING("fig3"), [["80 Mbit/s, SCTP"], ["80 Mbit/s, FAST"]]),
      step("FAST on the same link", "The same four flows with FAST alone.", "Is a packet lost? Do all four get the same?", "multihoming-2010, section II.A: with zero packet loss at the bottleneck", MULTIHOMING("fig3"), [["80 Mbit/s, FAST"]]),
      step("Two paths, one receive buffer", "Path 1 loses nothing; bursts overload path 2 half of the time. Both share a small receive buffer.", "Why does path 1 pause when path 2 loses?", "multihoming-2010, section III.B: preventing rbuf from blocking", MULTIHOMING("fig10"), [["cmt", "bursts"], ["fast_mh", "bursts"]]),
      step("Random loss on one path", "Path 2 loses one packet in a hundred.", "Which of the two keeps the good path full?", "multihoming-2010, section III.B: FAST TCP multihoming outperforms SCTP-CMT under similar network conditions", MULTIHOMING("fig10-loss"), [["cmt", "0.01"], ["fast_mh", "0.01"]]),
      step("What a path has in flight", "An option that the paper does not have: a path that times out after 0.2 s without a SACK lets the other one send what it has in flight. The scene paths shows a path that fails.", "Does the healthy path still wait?", "a packet that need not wait for its path is not late", MULTIHOMING("fig10"), [["fast_mh", "bursts"], ["reinject", "bursts"]]),
    ],
  },
  {
    key: "ctcp-2019",
    title: "Composite TCP: was that loss congestion?",
    steps: [
      step("No losses", "Two links of equal speed: nothing is lost to congestion, and the window of 50 packets is the limit.", "What do SACK and Composite TCP do differently here?", "ctcp-2019, Table 2", CTCP("table2"), [["SACK", "Error=0"], ["CTCP, third duplicate", "Error=0"]]),
      step("One loss in a thousand", "Node 2 loses packets at random. SACK halves its window each time.", "How often does Composite TCP halve?", "ctcp-2019, section 5.1: most of these random losses were successfully identified by CTCP", CTCP("table2"), [["SACK", "error=0.001"], ["CTCP, third duplicate", "error=0.001"]]),
      step("One loss in a hundred", "Now it is ten times as bad.", "Does the gain grow with the losses?", "ctcp-2019, section 5.3: CTCP performs better when higher error rate was encountered", CTCP("table2"), [["Reno", "error=0.01"], ["CTCP, third duplicate", "error=0.01"]]),
      step("Two readings of one gap", "May a second gap in the same window end the belief in a random loss? The paper does not say.", "Which of the two is nearer to the paper's 12102 packets?", "ctcp-2019, Table 2", CTCP("table2"), [["CTCP, third duplicate", "error=0.01"], ["CTCP, same window", "error=0.01"]]),
      step("Two flows on one link", "Here two flows share the bottleneck, and one packet in a thousand is lost on the way.", "Does Composite TCP still yield when it is congestion?", "ctcp-2019, Table 3", CTCP("table3"), [["SACK", "error=0.001"], ["CTCP, third duplicate", "error=0.001"]]),
    ],
  },
  {
    key: "rrfast-2017",
    title: "RRFast: a longer route is no queue",
    steps: [
      step("The route changes", "Ten FAST flows cross a core. At 30 s all are moved to a way whose round trip is 376 ms in place of 125 ms.", "What does FAST take the longer round trip for?", "rrfast-2017, section 1: throughput of FAST TCP decreases sharply", RRFAST("rerouting"), [["FAST", "longer"]]),
      step("RRFast notices", "RRFast watches what a smaller window does to the round trip. If decreases in a row bring no relief, it was no queue: it forgets baseRTT.", "When is the new baseRTT learned?", "rrfast-2017, section 5.1: resets the BaseRTT a little later and increases cwnd", RRFAST("rerouting"), [["FAST", "longer"], ["RRFast", "longer"]], [25, 60]),
      step("Back to a shorter way", "The other direction is easy: the least round trip falls by itself.", "Do the two differ at all?", "rrfast-2017, section 5.2: this does not make any significant problem for FAST TCP", RRFAST("rerouting"), [["FAST", "shorter"], ["RRFast", "shorter"]]),
      step("Congestion instead", "Ten more flows join at 30 s. The round trip grows, but now because of a queue.", "Is RRFast fooled?", "rrfast-2017, section 4: when the reduced sending rate leads to decreased RTT the network faces with congestion", RRFAST("congestion"), [["not_near", "none"], ["not_near", "ten more flows"]]),
      step("The rule to the letter", "Read to the letter, any decrease and any fall count, and the rule resets baseRTT too often.", "What does each false reset do to the queue?", "each false reset adds what is queued to baseRTT, until the queue is full", RRFAST("congestion"), [["not_near", "ten more flows"], ["literal", "ten more flows"]]),
    ],
  },
];
