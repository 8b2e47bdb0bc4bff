// One or two TCP flows of ns-3 over a dumbbell, with which `cargo xtask ns3` compares our laws.
//
//   source i --- 1 Gbit/s, 500 us --- R1 === rate, delay === R2 --- 1 Gbit/s, 500 us --- sink i
//
// Each flow sends from about its start until the end. The output is one JSON object about the seconds from --from to --to: the goodput of each flow
// in payload bits a second, the mean number of packets in the bottleneck's queue, and the number of packets that the queue and the link's errors
// lost. Differences from ns-3's defaults: segments of 1448 bytes; buffers that never limit a flow; a minimum RTO of 200 ms as in Linux; an ACK for
// each segment; no queue discipline above the devices' queues, except RED. All other parameters, also those of the laws, are ns-3's defaults.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

/// The mean over time, from a start time, of a value that changes in steps.
class MeanInTime
{
  public:
    void Begin()
    {
        m_begin = m_since = Simulator::Now();
        m_sum = 0;
    }

    void Set(uint32_t value)
    {
        m_sum += m_value * (Simulator::Now() - m_since).GetSeconds();
        m_since = Simulator::Now();
        m_value = value;
    }

    double Mean()
    {
        Set(m_value);
        return m_sum / (Simulator::Now() - m_begin).GetSeconds();
    }

  private:
    Time m_begin, m_since;
    double m_sum = 0;
    uint32_t m_value = 0;
};

MeanInTime g_waiting;
uint64_t g_dropped, g_marked, g_errors;

void
Waiting(uint32_t, uint32_t now)
{
    g_waiting.Set(now);
}

void
Dropped(Ptr<const Packet>)
{
    ++g_dropped;
}

void
DroppedByRed(Ptr<const QueueDiscItem>)
{
    ++g_dropped;
}

void
MarkedByRed(Ptr<const QueueDiscItem>, const char*)
{
    ++g_marked;
}

void
LostByError(Ptr<const Packet>)
{
    ++g_errors;
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string laws = "TcpLinuxReno", rate = "10Mbps", delay = "19ms";
    uint32_t packets = 33, seed = 1, redMark = 0;
    double loss = 0, from = 10, to = 60;
    CommandLine line;
    line.AddValue("laws", "ns-3's names of the flows' laws, with commas between", laws);
    line.AddValue("rate", "rate of the bottleneck", rate);
    line.AddValue("delay", "delay of the bottleneck; 1 ms more of the path is elsewhere", delay);
    line.AddValue("packets", "limit of the bottleneck's queue", packets);
    line.AddValue("loss", "share of packets that are lost by chance", loss);
    line.AddValue("red-mark", "marks with RED what finds more packets than this; 0 is drop-tail", redMark);
    line.AddValue("from", "second at which measuring begins", from);
    line.AddValue("to", "second at which it ends", to);
    line.AddValue("seed", "number of the run", seed);
    line.Parse(argc, argv);
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(seed);

    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 24));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 24));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    // Our receiver acknowledges each segment, too. There is a second reason: ns-3 would delay the ACK of a lone segment by 200 ms, so the sender
    // would take the segment for lost, and the window would stay one segment.
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    if (redMark > 0)
    {
        Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
    }

    std::vector<std::string> names;
    std::stringstream list(laws);
    for (std::string name; std::getline(list, name, ',');)
    {
        names.push_back(name);
    }

    NodeContainer routers, sources, sinks;
    routers.Create(2);
    sources.Create(names.size());
    sinks.Create(names.size());
    InternetStackHelper stack;
    stack.Install(routers);
    stack.Install(sources);
    stack.Install(sinks);

    PointToPointHelper bottleneck, access;
    bottleneck.SetDeviceAttribute("DataRate", StringValue(rate));
    bottleneck.SetChannelAttribute("Delay", StringValue(delay));
    // RED keeps the packets itself, and passes them to the device one at a time.
    const std::string limit = std::to_string(redMark > 0 ? 1 : packets) + "p";
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(limit));
    access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    access.SetChannelAttribute("Delay", StringValue("500us"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("5000p"));

    NetDeviceContainer middle = bottleneck.Install(routers);
    std::vector<NetDeviceContainer> left, right;
    for (uint32_t i = 0; i < names.size(); ++i)
    {
        left.push_back(access.Install(sources.Get(i), routers.Get(0)));
        right.push_back(access.Install(routers.Get(1), sinks.Get(i)));
    }
    if (redMark > 0)
    {
        // One threshold, on the instantaneous queue length: the switch of the DCTCP paper.
        TrafficControlHelper red;
        red.SetRootQueueDisc("ns3::RedQueueDisc",
                             "MinTh", DoubleValue(redMark),
                             "MaxTh", DoubleValue(redMark),
                             "QW", DoubleValue(1),
                             "UseEcn", BooleanValue(true),
                             "UseHardDrop", BooleanValue(false),
                             "Gentle", BooleanValue(false),
                             "MeanPktSize", UintegerValue(1500),
                             "LinkBandwidth", StringValue(rate),
                             "LinkDelay", StringValue(delay),
                             "MaxSize", StringValue(std::to_string(packets) + "p"));
        Ptr<QueueDisc> disc = red.Install(middle.Get(0)).Get(0);
        disc->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Waiting));
        disc->TraceConnectWithoutContext("Drop", MakeCallback(&DroppedByRed));
        disc->TraceConnectWithoutContext("Mark", MakeCallback(&MarkedByRed));
    }
    else
    {
        Ptr<Queue<Packet>> queue = DynamicCast<PointToPointNetDevice>(middle.Get(0))->GetQueue();
        queue->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Waiting));
        queue->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));
        // A device with a full queue tells the layer above, which then drops the packet.
        Ptr<TrafficControlLayer> above = routers.Get(0)->GetObject<TrafficControlLayer>();
        above->TraceConnectWithoutContext("TcDrop", MakeCallback(&Dropped));
    }
    if (loss > 0)
    {
        Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
        errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        errors->SetRate(loss);
        middle.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
        middle.Get(1)->TraceConnectWithoutContext("PhyRxDrop", MakeCallback(&LostByError));
    }

    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    std::vector<Ipv4Address> there;
    // Assigning addresses installs a queue discipline before every device that has none.
    TrafficControlHelper none;
    auto number = [&](const NetDeviceContainer& devices) {
        Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        for (auto device = devices.Begin(); device != devices.End(); ++device)
        {
            if (redMark == 0 || *device != middle.Get(0))
            {
                none.Uninstall(*device);
            }
        }
        return interfaces.GetAddress(1);
    };
    number(middle);
    for (uint32_t i = 0; i < names.size(); ++i)
    {
        number(left[i]);
        there.push_back(number(right[i]));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Ptr<UniformRandomVariable> jitter = CreateObject<UniformRandomVariable>();
    std::vector<Ptr<PacketSink>> receivers;
    for (uint32_t i = 0; i < names.size(); ++i)
    {
        for (Ptr<Node> node : {sources.Get(i), sinks.Get(i)})
        {
            node->GetObject<TcpL4Protocol>()->SetAttribute("SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + names[i])));
        }
        const uint16_t port = 5000;
        PacketSinkHelper receive("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        ApplicationContainer receiver = receive.Install(sinks.Get(i));
        receivers.push_back(DynamicCast<PacketSink>(receiver.Get(0)));
        BulkSendHelper send("ns3::TcpSocketFactory", InetSocketAddress(there[i], port));
        send.SetAttribute("MaxBytes", UintegerValue(0));
        send.SetAttribute("SendSize", UintegerValue(1448));
        send.Install(sources.Get(i)).Start(Seconds(names.size() > 1 ? jitter->GetValue(0, 1) : 0));
    }

    std::vector<uint64_t> before(names.size());
    Simulator::Schedule(Seconds(from), [&] {
        g_waiting.Begin();
        g_dropped = g_marked = g_errors = 0;
        for (uint32_t i = 0; i < names.size(); ++i)
        {
            before[i] = receivers[i]->GetTotalRx();
        }
    });
    Simulator::Stop(Seconds(to));
    Simulator::Run();

    std::cout << "{\"goodput_bps\":[";
    for (uint32_t i = 0; i < names.size(); ++i)
    {
        std::cout << (i > 0 ? "," : "") << 8.0 * (receivers[i]->GetTotalRx() - before[i]) / (to - from);
    }
    std::cout << "],\"queue_packets\":" << g_waiting.Mean() << ",\"dropped\":" << g_dropped << ",\"marked\":" << g_marked
              << ",\"errors\":" << g_errors << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
