// The tree of tree.toml at about a tenth of its rates: tree-ns3 CUSTOMERS SECONDS FROM
//
// A core, an uplink of 432 Mbit/s, 9 districts of 10 streets, and so many customers a street, each of whom downloads by CUBIC. Customer k of
// every street has host k beyond the core, with the delay that makes up its round-trip time: a host has 90 connections, as ns-3 searches a
// router's interfaces and a host's connections for every packet. Routes are static and by prefix, the devices' own queues the only ones.
// No tracing, no timestamps, no IPv6.
// Prints name=value: CPU and wall seconds of Simulator::Run alone, the packets that the uplink has sent, and, from FROM on, its utilisation
// and the share of packets that its queue has dropped; events.
#include <algorithm>
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

using namespace ns3;

namespace {

constexpr uint16_t PORT = 5000;
constexpr uint32_t DISTRICTS = 9;
constexpr uint32_t STREETS = 10;
constexpr double UPLINK = 432e6;
constexpr const char* AMPLE = "200000p";

double Clock(clockid_t clock)
{
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// A link down, with a queue of so many packets, and as fast a one up. Returns the upper interface's number and the lower's address.
struct Joined
{
    uint32_t down;
    uint32_t up;
    Ipv4Address upper;
    Ipv4Address lower;
    Ptr<PointToPointNetDevice> device;
};

Joined Join(Ptr<Node> upper, Ptr<Node> lower, double rate, Time delay, const std::string& queue, Ipv4Address network)
{
    PointToPointHelper link;
    link.DisableFlowControl(); // the queue itself drops, and counts; no queue discipline before it
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rate))));
    link.SetChannelAttribute("Delay", TimeValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(AMPLE));
    const NetDeviceContainer ends = link.Install(upper, lower);
    const Ptr<PointToPointNetDevice> device = DynamicCast<PointToPointNetDevice>(ends.Get(0));
    device->GetQueue()->SetMaxSize(QueueSize(queue));
    Ipv4AddressHelper addresses(network, "255.255.255.0");
    const Ipv4InterfaceContainer both = addresses.Assign(ends);
    return {both.Get(0).second, both.Get(1).second, both.GetAddress(0), both.GetAddress(1), device};
}

struct Counts
{
    uint64_t bytes;
    uint64_t packets;
    uint64_t dropped;
};

// What a device's queue has passed on to its link, and dropped.
Counts CountsOf(Ptr<PointToPointNetDevice> device)
{
    const Ptr<Queue<Packet>> queue = device->GetQueue();
    return {queue->GetTotalReceivedBytes() - queue->GetNBytes(), queue->GetTotalReceivedPackets() - queue->GetNPackets(),
            queue->GetTotalDroppedPackets()};
}

} // namespace

int main(int argc, char* argv[])
{
    if (argc != 4)
    {
        std::fprintf(stderr, "tree-ns3 CUSTOMERS SECONDS FROM\n");
        return 2;
    }
    const uint32_t customers = std::max(2UL, std::strtoul(argv[1], nullptr, 10));
    const double seconds = std::strtod(argv[2], nullptr);
    const double from = std::strtod(argv[3], nullptr);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    NodeContainer routers(2 + DISTRICTS), streets(DISTRICTS * STREETS), hosts(customers);
    InternetStackHelper stack;
    Ipv4StaticRoutingHelper routing;
    stack.SetRoutingHelper(routing);
    stack.SetIpv6StackInstall(false);
    stack.Install(routers);
    stack.Install(streets);
    stack.Install(hosts);
    const auto table = [&routing](Ptr<Node> node) { return routing.GetStaticRouting(node->GetObject<Ipv4>()); };

    // 10.1: below the uplink, 10.1.16 d + s a street; 10.2: hosts.
    const Ptr<Node> core = routers.Get(0), top = routers.Get(1);
    const Joined uplink = Join(core, top, UPLINK, MilliSeconds(2), "756p", "10.3.0.0");
    table(core)->AddNetworkRouteTo("10.1.0.0", "255.255.0.0", uplink.lower, uplink.down);
    table(top)->SetDefaultRoute(uplink.upper, uplink.up);
    std::vector<Ipv4Address> to;
    for (uint32_t d = 0; d < DISTRICTS; d++)
    {
        const Ptr<Node> district = routers.Get(2 + d);
        const uint32_t prefix = Ipv4Address("10.1.0.0").Get() | d << 12;
        const Joined link = Join(top, district, 64.8e6, MilliSeconds(2), "108p", Ipv4Address(prefix | 15 << 8));
        table(top)->AddNetworkRouteTo(Ipv4Address(prefix), "255.255.240.0", link.lower, link.down);
        table(district)->SetDefaultRoute(link.upper, link.up);
        for (uint32_t s = 0; s < STREETS; s++)
        {
            const Ptr<Node> street = streets.Get(d * STREETS + s);
            const Joined end = Join(district, street, 10.8e6, MilliSeconds(1), "18p", Ipv4Address(prefix | s << 8));
            table(street)->SetDefaultRoute(end.upper, end.up);
            to.push_back(end.lower);
            PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
            sink.Install(street).Start(Seconds(0));
        }
    }
    const Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    for (uint32_t k = 0; k < customers; k++)
    {
        const Ptr<Node> host = hosts.Get(k);
        // 20 to 60 ms, of which 10 are the tree's.
        const Time delay = MicroSeconds(5000 + 20000 * k / (customers - 1));
        const Joined link = Join(core, host, 100e6 * to.size(), delay, AMPLE, Ipv4Address(0x0a020000 | k << 8));
        table(host)->SetDefaultRoute(link.upper, link.up);
        for (const Ipv4Address& street : to)
        {
            BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(street, PORT));
            bulk.SetAttribute("MaxBytes", UintegerValue(0));
            bulk.SetAttribute("SendSize", UintegerValue(14600));
            bulk.Install(host).Start(Seconds(start->GetValue(0, 0.5)));
        }
    }

    Counts before{};
    Simulator::Schedule(Seconds(from), [&] { before = CountsOf(uplink.device); });
    Simulator::Stop(Seconds(seconds));
    const double cpu = Clock(CLOCK_PROCESS_CPUTIME_ID), wall = Clock(CLOCK_MONOTONIC);
    Simulator::Run();
    const double cpu_s = Clock(CLOCK_PROCESS_CPUTIME_ID) - cpu, wall_s = Clock(CLOCK_MONOTONIC) - wall;
    const Counts end = CountsOf(uplink.device);
    const double dropped = static_cast<double>(end.dropped - before.dropped);
    const double sent = static_cast<double>(end.packets - before.packets);
    // The two bytes of PPP before each packet take time, too.
    const double utilisation = 8.0 * static_cast<double>(end.bytes - before.bytes) / UPLINK / (seconds - from);
    std::printf("cpu_s=%.3f wall_s=%.3f packets=%llu utilisation=%.4f loss=%.4f events=%llu\n", cpu_s, wall_s,
                static_cast<unsigned long long>(end.packets), utilisation, dropped / (dropped + sent),
                static_cast<unsigned long long>(Simulator::GetEventCount()));
    Simulator::Destroy();
    return 0;
}
