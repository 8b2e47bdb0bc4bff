// The network and load of highspeed.toml, for htsim.
#include <cstdlib>
#include <iostream>

#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

namespace {

constexpr int WAITING_MAX = 3000, WINDOW = 2200, BYTES = 1500;

// A link in one direction.
struct Link {
    Queue queue;
    Pipe pipe;

    Link(int mbit_per_s, int ms, EventList& events)
        : queue(speedFromMbps(static_cast<uint64_t>(mbit_per_s)), memFromPkt(WAITING_MAX), events, nullptr),
          pipe(timeFromMs(ms), events) {}

    void append_to(Route& route) {
        route.push_back(&queue);
        route.push_back(&pipe);
    }
};

}  // namespace

int main(int count, char** arguments) {
    const double seconds = count > 1 ? std::atof(arguments[1]) : 100;
    EventList events;
    events.setEndtime(timeFromSec(seconds));
    Packet::set_packet_size(BYTES);
    // Everything lives until the end of the program.
    auto link = [&](int mbit_per_s, int ms) { return new Link(mbit_per_s, ms, events); };
    Link *there = link(800, 48), *back = link(800, 48);
    TcpRtxTimerScanner timers(timeFromMs(10), events);
    TcpSink* sinks[4];
    for (int flow = 0; flow < 4; flow++) {
        auto* source = new TcpSrc(nullptr, nullptr, events);
        source->_maxcwnd = WINDOW * BYTES;
        source->set_ssthresh(WINDOW * BYTES);
        source->set_cwnd(2 * BYTES);
        timers.registerTcp(*source);
        sinks[flow] = new TcpSink();
        auto *out = new Route(), *home = new Route();
        for (Link* hop : {link(8000, 1), there, link(8000, 1)}) hop->append_to(*out);
        for (Link* hop : {link(8000, 1), back, link(8000, 1)}) hop->append_to(*home);
        out->push_back(sinks[flow]);
        home->push_back(source);
        source->connect(*out, *home, *sinks[flow], timeFromMs(100.0 * flow));
    }
    while (events.doNextEvent()) {
    }
    uint64_t acknowledged = 0;
    for (TcpSink* sink : sinks) acknowledged += sink->cumulative_ack();
    std::cout << "packets " << acknowledged / BYTES << std::endl;
}
