// The dumbbell of the race for ns-3: dumbbell-ns3 FLOWS SECONDS
//
// N NewReno flows share N Mbit/s behind RED. A host's list of connections is searched for every packet, and so is a
// router's list of interfaces: with the square root of N / 10 hosts a side, both stay short. Routes are static, a
// default at every host and one prefix at each router, for ns-3's usual list of routing protocols asks each in turn
// and each searches the interfaces again. No tracing, no timestamps, no IPv6.
// Prints name=value: CPU seconds of Simulator::Run alone, and the bottleneck queue's own counts.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
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

double CpuSeconds()
{
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Halves what is not acknowledged (RFC 6675 §5 step 4.2; RFC 5681 Eq. (4), without what limited transmit sent), where
// ns-3's halves what is under way without the segments selected or lost.
class HalvesFlightSize : public TcpNewReno
{
  public:
    static TypeId GetTypeId()
    {
        static const TypeId id = TypeId("HalvesFlightSize").SetParent<TcpNewReno>().AddConstructor<HalvesFlightSize>();
        return id;
    }

    std::string GetName() const override
    {
        return "HalvesFlightSize";
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<HalvesFlightSize>(this);
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t) override
    {
        const uint32_t flight = static_cast<uint32_t>(state->m_highTxMark.Get() - state->m_lastAckedSeq);
        return std::max(2 * state->m_segmentSize, std::min(flight, state->m_cWnd.Get()) / 2);
    }
};

PointToPointHelper Link(double mbps, const char* delay, const std::string& queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(mbps * 1e6))));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
    return link;
}

// The prefix of all hosts of a side.
Ipv4Address Side(bool sending)
{
    return Ipv4Address(sending ? "10.1.0.0" : "10.2.0.0");
}

} // namespace

int main(int argc, char* argv[])
{
    if (argc != 3)
    {
        std::fprintf(stderr, "dumbbell-ns3 FLOWS SECONDS\n");
        return 2;
    }
    const uint32_t n = std::strtoul(argv[1], nullptr, 10);
    const double seconds = std::strtod(argv[2], nullptr);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(HalvesFlightSize::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    const uint32_t hosts = std::max(1L, std::lround(std::sqrt(n / 10.0)));
    NodeContainer routers(2), senders(hosts), receivers(hosts);
    InternetStackHelper stack;
    Ipv4StaticRoutingHelper routing;
    stack.SetRoutingHelper(routing);
    stack.SetIpv6StackInstall(false);
    stack.Install(routers);
    stack.Install(senders);
    stack.Install(receivers);

    const std::string ample = std::to_string(std::max<uint32_t>(100000, 8 * n)) + "p";
    PointToPointHelper access = Link(10.0 * n, "7.5ms", ample);
    Ipv4AddressHelper addresses;
    TrafficControlHelper none;
    ApplicationContainer sinks;
    std::vector<Ipv4Address> to(hosts);
    for (uint32_t i = 0; i < hosts; i++)
    {
        for (bool sending : {true, false})
        {
            const Ptr<Node> host = (sending ? senders : receivers).Get(i);
            const NetDeviceContainer ends = access.Install(routers.Get(sending ? 0 : 1), host);
            addresses.SetBase(Ipv4Address(Side(sending).Get() | i << 8), "255.255.255.0");
            const Ipv4InterfaceContainer interfaces = addresses.Assign(ends);
            none.Uninstall(ends); // the device's own queue is the only one
            routing.GetStaticRouting(host->GetObject<Ipv4>())->SetDefaultRoute(interfaces.GetAddress(0), 1);
            if (!sending)
            {
                to[i] = interfaces.GetAddress(1);
            }
        }
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
        sinks.Add(sink.Install(receivers.Get(i)));
    }

    PointToPointHelper bottleneck = Link(n, "10ms", "1p");
    const NetDeviceContainer forward = bottleneck.Install(routers);
    DynamicCast<PointToPointNetDevice>(forward.Get(1))->GetQueue()->SetMaxSize(QueueSize(ample));
    TrafficControlHelper red;
    red.SetRootQueueDisc("ns3::RedQueueDisc",
                         "MaxSize", QueueSizeValue(QueueSize(std::to_string(8 * n) + "p")),
                         "MinTh", DoubleValue(n), "MaxTh", DoubleValue(3.0 * n), "QW", DoubleValue(0.002),
                         "LInterm", DoubleValue(10), "Gentle", BooleanValue(true), "MeanPktSize", UintegerValue(1040),
                         "LinkBandwidth", DataRateValue(DataRate(static_cast<uint64_t>(n * 1e6))),
                         "LinkDelay", StringValue("10ms"));
    const QueueDiscContainer discs = red.Install(forward.Get(0));
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    const Ipv4InterfaceContainer middle = addresses.Assign(forward);
    none.Uninstall(forward.Get(1));
    for (uint32_t router : {0, 1})
    {
        routing.GetStaticRouting(middle.Get(router).first)
            ->AddNetworkRouteTo(Side(router == 1), "255.255.0.0", middle.GetAddress(1 - router),
                                middle.Get(router).second);
    }

    const double spread = std::min(0.001, 1.0 / n);
    for (uint32_t i = 0; i < n; i++)
    {
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(to[i % hosts], PORT));
        bulk.SetAttribute("MaxBytes", UintegerValue(0));
        bulk.SetAttribute("SendSize", UintegerValue(10000));
        bulk.Install(senders.Get(i % hosts)).Start(Seconds(spread * i));
    }
    sinks.Start(Seconds(0));

    Simulator::Stop(Seconds(seconds));
    const double before = CpuSeconds();
    Simulator::Run();
    const double took = CpuSeconds() - before;
    const QueueDisc::Stats& counts = discs.Get(0)->GetStats();
    std::printf("cpu_s=%.6f arrived=%u dropped=%u packets=%u events=%llu\n", took, counts.nTotalReceivedPackets,
                counts.nTotalDroppedPackets, counts.nTotalDequeuedPackets,
                static_cast<unsigned long long>(Simulator::GetEventCount()));
    Simulator::Destroy();
    return 0;
}
