// A closed loop in ns-3: loop-ns3 red|codel|pie reno|sack|cubic SEED
//
// Five bulk flows of 80, 90, 100, 110 and 120 ms share 20 Mbit/s for 50 s, of which 40 are measured: validation/loops.toml.
// ns-3's own TCP: TcpLinuxReno, without and with SACK, and TcpCubic; both with PRR where there is SACK. What differs
// from its defaults is what the experiment says: no timestamps, a window of 1000 segments of 1460 B.
// Prints name=value: dropped packets, utilisation, the mean number of waiting packets.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

constexpr uint16_t PORT = 5000;
constexpr double FROM = 10.0;
constexpr double SECONDS = 50.0;
constexpr double RATE = 20e6;
// Hosts' links add a millisecond each way at either end.
constexpr double BOTTLENECK_MS = 10.0;
constexpr uint32_t ROUND_TRIPS_MS[] = {80, 90, 100, 110, 120};

// The integral of what waits over time, in packet-seconds.
struct Waiting
{
    double integral = 0.0;
    double since = 0.0;
    uint32_t packets = 0;

    void Changed(uint32_t, uint32_t now)
    {
        const double at = Simulator::Now().GetSeconds();
        integral += packets * (at - since);
        since = at;
        packets = now;
    }

    void Begins()
    {
        Changed(packets, packets);
        integral = 0.0;
    }
};

PointToPointHelper Link(double bps, double ms, const std::string& queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(bps))));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(static_cast<uint64_t>(1000.0 * ms))));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
    return link;
}

bool SetDiscipline(TrafficControlHelper& helper, const std::string& name)
{
    const QueueSizeValue limit(QueueSize("1000p"));
    if (name == "red")
    {
        helper.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", limit, "MinTh", DoubleValue(10), "MaxTh", DoubleValue(30),
                                "LInterm", DoubleValue(50), "QW", DoubleValue(0.002), "Gentle", BooleanValue(true),
                                "Wait", BooleanValue(false), "MeanPktSize", UintegerValue(1500),
                                "LinkBandwidth", DataRateValue(DataRate(static_cast<uint64_t>(RATE))),
                                "LinkDelay", TimeValue(MicroSeconds(static_cast<uint64_t>(1000.0 * BOTTLENECK_MS))));
    }
    else if (name == "codel")
    {
        helper.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", limit, "Target", StringValue("5ms"),
                                "Interval", StringValue("100ms"));
    }
    else if (name == "pie")
    {
        helper.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", limit, "QueueDelayReference", TimeValue(MilliSeconds(15)),
                                "Tupdate", TimeValue(MilliSeconds(15)), "MaxBurstAllowance", TimeValue(MilliSeconds(150)),
                                "MeanPktSize", UintegerValue(1500));
    }
    else
    {
        return false;
    }
    return true;
}

} // namespace

int main(int argc, char* argv[])
{
    const std::string discipline = argc == 4 ? argv[1] : "";
    const std::string tcp = argc == 4 ? argv[2] : "";
    TrafficControlHelper helper;
    if (!SetDiscipline(helper, discipline) || (tcp != "reno" && tcp != "sack" && tcp != "cubic"))
    {
        std::fprintf(stderr, "loop-ns3 red|codel|pie reno|sack|cubic SEED\n");
        return 2;
    }
    RngSeedManager::SetRun(std::strtoull(argv[3], nullptr, 10));

    const TypeId control = tcp == "cubic" ? TcpCubic::GetTypeId() : TcpLinuxReno::GetTypeId();
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(control));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(tcp != "reno"));
    if (tcp == "reno")
    {
        Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    }
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(2 * 1460 * 1000));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1460 * 1000));

    NodeContainer routers(2);
    const uint32_t flows = std::size(ROUND_TRIPS_MS);
    NodeContainer senders(flows), receivers(flows);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(routers);
    stack.Install(senders);
    stack.Install(receivers);

    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    PointToPointHelper bottleneck = Link(RATE, BOTTLENECK_MS, "1p");
    const NetDeviceContainer forward = bottleneck.Install(routers);
    DynamicCast<PointToPointNetDevice>(forward.Get(1))->GetQueue()->SetMaxSize(QueueSize("100000p"));
    const Ptr<QueueDisc> disc = helper.Install(forward.Get(0)).Get(0);
    addresses.Assign(forward);

    std::vector<Ipv4Address> to;
    TrafficControlHelper none;
    for (uint32_t i = 0; i < flows; i++)
    {
        addresses.NewNetwork();
        const double one_way = ROUND_TRIPS_MS[i] / 2.0 - BOTTLENECK_MS;
        PointToPointHelper near = Link(1e9, one_way - 1.0, "100000p");
        const NetDeviceContainer left = near.Install(senders.Get(i), routers.Get(0));
        addresses.Assign(left);
        none.Uninstall(left);
        addresses.NewNetwork();
        PointToPointHelper far = Link(1e9, 1.0, "100000p");
        const NetDeviceContainer right = far.Install(routers.Get(1), receivers.Get(i));
        to.push_back(addresses.Assign(right).GetAddress(1));
        none.Uninstall(right);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < flows; i++)
    {
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
        sink.Install(receivers.Get(i)).Start(Seconds(0));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(to[i], PORT));
        bulk.SetAttribute("MaxBytes", UintegerValue(0));
        bulk.SetAttribute("SendSize", UintegerValue(14600));
        bulk.Install(senders.Get(i)).Start(Seconds(start->GetValue(0.0, 1.0)));
    }

    Waiting in_disc, in_device;
    disc->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Waiting::Changed, &in_disc));
    DynamicCast<PointToPointNetDevice>(forward.Get(0))
        ->GetQueue()
        ->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Waiting::Changed, &in_device));

    QueueDisc::Stats before;
    Simulator::Schedule(Seconds(FROM), [&]() {
        before = disc->GetStats();
        in_disc.Begins();
        in_device.Begins();
    });
    Simulator::Stop(Seconds(SECONDS));
    Simulator::Run();
    in_disc.Changed(0, 0);
    in_device.Changed(0, 0);
    const QueueDisc::Stats& counts = disc->GetStats();
    const double seconds = SECONDS - FROM;
    const double bits = 8.0 * static_cast<double>(counts.nTotalDequeuedBytes - before.nTotalDequeuedBytes);
    std::printf("drops=%u utilisation=%.6f queue_mean=%.3f\n", counts.nTotalDroppedPackets - before.nTotalDroppedPackets,
                bits / (RATE * seconds), (in_disc.integral + in_device.integral) / seconds);
    Simulator::Destroy();
    return 0;
}
