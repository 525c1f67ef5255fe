// What Fast DDS discovers, kept by id.
#include <fastdds/rtps/builtin/data/ParticipantProxyData.h>
#include <fastdds/rtps/builtin/data/ReaderProxyData.h>
#include <fastdds/rtps/builtin/data/WriterProxyData.h>
#include <fastdds/rtps/participant/ParticipantDiscoveryInfo.h>
#include <fastdds/rtps/reader/ReaderDiscoveryInfo.h>
#include <fastdds/rtps/writer/WriterDiscoveryInfo.h>

#include <algorithm>
#include <cstring>

#include "fastdds.h"

namespace understudy {

static void copy_text(char *to, size_t cap, const std::string &from) {
    const size_t n = std::min(cap - 1, from.size());
    std::memcpy(to, from.data(), n);
    to[n] = 0;
}

// The value behind "typehash=" in an endpoint's user data.
static void read_hash(const Bytes &user_data, char *to, size_t cap) {
    static const std::string key = "typehash=";
    const std::string text(user_data.begin(), user_data.end());
    const size_t at = text.find(key);
    if (at == std::string::npos) return;
    const std::string value = text.substr(at + key.size(), text.find(';', at) - at - key.size());
    if (value.size() < cap) copy_text(to, cap, value);
}

// 0 for what has no end.
static int64_t ns_of(const eprosima::fastrtps::Duration_t &time) {
    return time == eprosima::fastrtps::c_TimeInfinite ? 0 : static_cast<int64_t>(time.seconds) * 1000000000 + time.nanosec;
}

// Readers and writers are described by classes of their own with members of the same names.
template <class Proxy> static us_endpoint describe(const Proxy &proxy, bool is_writer) {
    us_endpoint e;
    std::memset(&e, 0, sizeof e);
    e.is_writer = is_writer;
    const Id id = to_id(proxy.guid());
    const Id participant = to_id(rtps::GUID_t(proxy.guid().guidPrefix, rtps::c_EntityId_RTPSParticipant));
    std::copy(id.begin(), id.end(), e.id);
    std::copy(participant.begin(), participant.end(), e.participant);
    copy_text(e.topic, sizeof e.topic, proxy.topicName().to_string());
    copy_text(e.type, sizeof e.type, proxy.typeName().to_string());
    const Bytes user_data = proxy.m_qos.m_userData.getValue();
    e.dialect = usi_dialect_of(e.id, user_data.data(), user_data.size());
    read_hash(user_data, e.hash, sizeof e.hash);
    e.qos.is_reliable = proxy.m_qos.m_reliability.kind == fast::RELIABLE_RELIABILITY_QOS;
    e.qos.is_transient_local = proxy.m_qos.m_durability.kind >= fast::TRANSIENT_LOCAL_DURABILITY_QOS;
    e.qos.depth = 1;  // is not announced
    std::string partitions;
    const std::vector<std::string> names = proxy.m_qos.m_partition.getNames();
    for (size_t i = 0; i < names.size(); i++) partitions += (i > 0 ? "," : "") + names[i];
    copy_text(e.partitions, sizeof e.partitions, partitions);
    e.qos.deadline = ns_of(proxy.m_qos.m_deadline.period);
    e.qos.lifespan = ns_of(proxy.m_qos.m_lifespan.duration);
    e.qos.lease = ns_of(proxy.m_qos.m_liveliness.lease_duration);
    e.qos.liveliness = static_cast<us_liveliness>(proxy.m_qos.m_liveliness.kind);
    e.qos.is_exclusive = proxy.m_qos.m_ownership.kind == fast::EXCLUSIVE_OWNERSHIP_QOS;
    return e;
}

// What announces no version is of the first.
static void set_versions(us_endpoint &e, const std::vector<fast::DataRepresentationId_t> &values) {
    e.is_xcdr1 = values.empty() || std::find(values.begin(), values.end(), fast::XCDR_DATA_REPRESENTATION) != values.end();
    e.is_xcdr2 = std::find(values.begin(), values.end(), fast::XCDR2_DATA_REPRESENTATION) != values.end();
}

void Network::on_participant_discovery(fast::DomainParticipant * /*participant*/, rtps::ParticipantDiscoveryInfo &&info) {
    const Id id = to_id(info.info.m_guid);
    const bool is_here = info.status == rtps::ParticipantDiscoveryInfo::DISCOVERED_PARTICIPANT ||
                         info.status == rtps::ParticipantDiscoveryInfo::CHANGED_QOS_PARTICIPANT;
    if (is_here) {
        Peer peer;
        const auto &data = info.info.m_userData;
        peer.user_data.assign(data.begin(), data.end());
        for (const auto &property : info.info.m_properties) {
            if (property.first() == "__Hostname") peer.host = property.second();
        }
        peer.vendor = static_cast<uint16_t>(info.info.m_VendorId[0] << 8 | info.info.m_VendorId[1]);
        add(id, peer);
        return;
    }
    const std::lock_guard<std::mutex> guard(lock);
    peers.erase(id);
    for (auto at = endpoints.begin(); at != endpoints.end();) {
        at = std::memcmp(at->second.participant, id.data(), id.size()) == 0 ? endpoints.erase(at) : std::next(at);
    }
}

void Network::on_publisher_discovery(fast::DomainParticipant * /*participant*/, rtps::WriterDiscoveryInfo &&info) {
    us_endpoint e = describe(info.info, true);
    set_versions(e, info.info.m_qos.representation.m_value);
    if (info.status == rtps::WriterDiscoveryInfo::DISCOVERED_WRITER || info.status == rtps::WriterDiscoveryInfo::CHANGED_QOS_WRITER) {
        add(e);
    } else {
        remove(to_id(info.info.guid()));
    }
}

void Network::on_subscriber_discovery(fast::DomainParticipant * /*participant*/, rtps::ReaderDiscoveryInfo &&info) {
    us_endpoint e = describe(info.info, false);
    set_versions(e, info.info.m_qos.representation.m_value);
    if (info.status == rtps::ReaderDiscoveryInfo::DISCOVERED_READER || info.status == rtps::ReaderDiscoveryInfo::CHANGED_QOS_READER) {
        add(e);
    } else {
        remove(to_id(info.info.guid()));
    }
}

void Network::add(const us_endpoint &endpoint) {
    Id id;
    std::copy(endpoint.id, endpoint.id + id.size(), id.begin());
    const std::lock_guard<std::mutex> guard(lock);
    endpoints[id] = endpoint;
    if (on_writer && endpoint.is_writer) on_writer(writer_context, &endpoint);
}

void Network::watch(usi_visit_endpoint *visit, void *context) {
    const std::lock_guard<std::mutex> guard(lock);
    on_writer = visit;
    writer_context = context;
    for (const auto &entry : endpoints) {
        if (entry.second.is_writer) visit(context, &entry.second);
    }
}

void Network::remove(const Id &endpoint) {
    const std::lock_guard<std::mutex> guard(lock);
    endpoints.erase(endpoint);
}

void Network::add(const Id &participant, const Peer &peer) {
    const std::lock_guard<std::mutex> guard(lock);
    peers[participant] = peer;
}

us_dialect Network::dialect_of(const Id &endpoint) {
    if (!usi_id_is_hashed(endpoint.data())) return usi_dialect_of(endpoint.data(), nullptr, 0);
    const std::lock_guard<std::mutex> guard(lock);
    const auto found = endpoints.find(endpoint);
    return found == endpoints.end() ? US_DIALECT_FASTDDS : found->second.dialect;
}

// What is visited is a copy: the visitor may take as long as it likes.
void Network::list(usi_visit_endpoint *visit, void *context) {
    std::unique_lock<std::mutex> guard(lock);
    const auto copy = endpoints;
    guard.unlock();
    for (const auto &entry : copy) visit(context, &entry.second);
}

void Network::list(usi_visit_peer *visit, void *context) {
    std::unique_lock<std::mutex> guard(lock);
    const auto copy = peers;
    guard.unlock();
    for (const auto &entry : copy) {
        usi_vendor_peer peer{};
        std::copy(entry.first.begin(), entry.first.end(), peer.id);
        peer.user_data = entry.second.user_data.data();
        peer.n_user_data = entry.second.user_data.size();
        peer.host = entry.second.host.c_str();
        peer.vendor = entry.second.vendor;
        visit(context, &peer);
    }
}

}  // namespace understudy
