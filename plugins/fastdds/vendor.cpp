// The vendor Fast DDS: a participant, readers and writers of bytes, as a library of its own.
//
// The names of the functions and what they promise stand in src/bus/vendor.h. No exception leaves this file, and nothing is printed.
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/rtps/attributes/ServerAttributes.h>
#include <fastdds/rtps/common/WriteParams.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>
#include <fastrtps/xmlparser/XMLParserCommon.h>
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>

#include "fastdds.h"

using namespace understudy;
using eprosima::fastrtps::types::ReturnCode_t;

namespace {

// As many programs on one machine are found by each other as with Cyclone DDS.
constexpr uint32_t max_participant = 101;
constexpr uint32_t buffer_size = 4 << 20;  // bytes of a socket's buffers; the system gives what it allows
constexpr int32_t max_history = 100000;
// A write that has to wait longer gives up.
const eprosima::fastrtps::Duration_t max_blocking(0, 1000000);
const eprosima::fastrtps::Duration_t linger(1, 0);
const eprosima::fastrtps::Duration_t heartbeat(0, 100000000);

std::string hostname() {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

// ---- the participant ----------------------------------------------------------------------------------------------------

rtps::Locator_t locator_of(unsigned char a, unsigned char b, unsigned char c, unsigned char d) {
    rtps::Locator_t locator;
    locator.kind = LOCATOR_KIND_UDPv4;
    rtps::IPLocator::setIPv4(locator, a, b, c, d);
    return locator;
}

// The group in which participants of a domain are found.
rtps::Locator_t group_of(int32_t domain) {
    rtps::Locator_t group = locator_of(239, 255, 0, 1);
    group.port = static_cast<uint32_t>(7400 + 250 * domain);
    return group;
}

// The IPv4 addresses of this machine, the loopback's first.
std::vector<std::string> own_addresses() {
    std::vector<std::string> list{"127.0.0.1"};
    ifaddrs *found = nullptr;
    if (getifaddrs(&found) != 0) return list;
    for (const ifaddrs *at = found; at; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET || !(at->ifa_flags & IFF_UP) || (at->ifa_flags & IFF_LOOPBACK)) continue;
        char text[INET_ADDRSTRLEN];
        const auto *address = reinterpret_cast<const sockaddr_in *>(at->ifa_addr);
        if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text)) list.emplace_back(text);
    }
    freeifaddrs(found);
    return list;
}

// The IPv4 address of a peer, which may be a name. Names that nobody knows are left out: the peer may come to exist later, but not for us.
void add_peer(rtps::LocatorList_t &list, const char *peer) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    addrinfo *found = nullptr;
    if (getaddrinfo(peer, nullptr, &hints, &found) != 0 || !found) return;
    const auto *address = reinterpret_cast<const sockaddr_in *>(found->ai_addr);
    const auto *bytes = reinterpret_cast<const unsigned char *>(&address->sin_addr);
    const rtps::Locator_t locator = locator_of(bytes[0], bytes[1], bytes[2], bytes[3]);
    freeaddrinfo(found);
    list.push_back(locator);  // port 0 stands for those of all participants of the domain
}

// DDS Security: the built-in plug-ins and the files of an enclave.
void secure(fast::DomainParticipantQos &qos, const std::string &keys) {
    auto &properties = qos.properties().properties();
    const std::string auth = "dds.sec.auth.builtin.PKI-DH.", access = "dds.sec.access.builtin.Access-Permissions.", file = "file://" + keys + "/";
    properties.emplace_back("dds.sec.auth.plugin", "builtin.PKI-DH");
    properties.emplace_back(auth + "identity_ca", file + "identity_ca.cert.pem");
    properties.emplace_back(auth + "identity_certificate", file + "cert.pem");
    properties.emplace_back(auth + "private_key", file + "key.pem");
    // Cyclone DDS reads no other kind of key. Fast DDS 2.9 does not know the property, and proposes the other kind when it is the one who begins.
    properties.emplace_back(auth + "preferred_key_agreement", "ECDH");
    properties.emplace_back("dds.sec.access.plugin", "builtin.Access-Permissions");
    properties.emplace_back(access + "permissions_ca", file + "permissions_ca.cert.pem");
    properties.emplace_back(access + "governance", file + "governance.p7s");
    properties.emplace_back(access + "permissions", file + "permissions.p7s");
    properties.emplace_back("dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC");
}

fast::DomainParticipantQos make_participant_qos(const usi_vendor_open &def) {
    fast::DomainParticipantQos qos = fast::PARTICIPANT_QOS_DEFAULT;
    qos.name("understudy");
    const Bytes user_data(def.user_data, def.user_data + std::strlen(def.user_data));
    qos.user_data().setValue(user_data);
    qos.properties().properties().emplace_back("__Hostname", hostname(), true);
    if (def.keys) secure(qos, def.keys);

    auto &wire = qos.wire_protocol();
    // What others announce may be longer than the first guess.
    wire.builtin.readerHistoryMemoryPolicy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    wire.builtin.writerHistoryMemoryPolicy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    auto transport = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    transport->maxInitialPeersRange = max_participant;
    transport->non_blocking_send = false;
    transport->sendBufferSize = buffer_size;
    transport->receiveBufferSize = buffer_size;
    if (usi_range_is_local(def.range)) transport->TTL = 0;
    if (def.range == US_BUS_OFF) transport->interfaceWhiteList.emplace_back("127.0.0.1");
    // A program of this machine may use the loopback alone, or not at all: it is spoken to on every address. Nothing said to one of them leaves the machine.
    if (def.range == US_BUS_LOCALHOST || def.range == US_BUS_LOOPBACK) {
        transport->interfaceWhiteList = own_addresses();
        // By itself Fast DDS announces the loopback only where there is nothing else. Addresses that are named here leave no multicast: it is named too.
        for (const auto &address : transport->interfaceWhiteList) {
            rtps::Locator_t own = locator_of(127, 0, 0, 1);
            rtps::IPLocator::setIPv4(own, address);
            wire.builtin.metatrafficUnicastLocatorList.push_back(own);
            wire.default_unicast_locator_list.push_back(own);
        }
        wire.builtin.metatrafficMulticastLocatorList.push_back(group_of(def.domain));
    }
    if (def.range == US_BUS_OFF) {
        // One unicast address, chosen here, also means: no multicast.
        wire.builtin.metatrafficUnicastLocatorList.push_back(locator_of(127, 0, 0, 1));
        wire.builtin.discovery_config.ignoreParticipantFlags =
            static_cast<rtps::ParticipantFilteringFlags_t>(rtps::FILTER_DIFFERENT_HOST | rtps::FILTER_DIFFERENT_PROCESS | rtps::FILTER_SAME_PROCESS);
    } else if (def.range != US_BUS_SYSTEM_DEFAULT) {
        if (usi_range_is_local(def.range)) add_peer(wire.builtin.initialPeersList, "127.0.0.1");
        for (int32_t i = 0; i < def.n_peer; i++) add_peer(wire.builtin.initialPeersList, def.peers[i]);
        if (!wire.builtin.initialPeersList.empty()) {
            // A list of peers replaces the multicast group: it has to be named again.
            wire.builtin.initialPeersList.push_back(group_of(def.domain));
        }
    }
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(transport);
    return qos;
}

void vendor_close(usi_vendor_participant *p) {
    if (p->participant) {
        p->participant->set_listener(nullptr);
        p->participant->delete_contained_entities();
        fast::DomainParticipantFactory::get_instance()->delete_participant(p->participant);
    }
    delete p;
}

// A discovery server of the environment. By itself Fast DDS asks it as a client, which hears of its own topics alone; here everything is asked for, so
// that topics can be listed.
us_status use_server(const usi_vendor_open &def, fast::DomainParticipantQos &qos, us_error *err) {
    const char *server = std::getenv("ROS_DISCOVERY_SERVER");
    if (usi_range_is_local(def.range) || !server || !server[0]) return US_OK;
    auto &discovery = qos.wire_protocol().builtin.discovery_config;
    if (!eprosima::fastdds::rtps::load_environment_server_info(server, discovery.m_DiscoveryServers))
        return set_error(err, US_ERR_VALUE, std::string("the environment variable ROS_DISCOVERY_SERVER has the value \"") + server + "\"",
                         "Set it to addresses of discovery servers, as 10.1.0.2:11811, separated by ;, or unset it.");
    discovery.discoveryProtocol = rtps::DiscoveryProtocol_t::SUPER_CLIENT;
    return US_OK;
}

// Endpoints of requests ask for and offer what the defaults of Cyclone do not: Fast DDS does not compare these policies. With keys the two have not met
// then for Fast DDS either, which waits for the key of the other endpoint.
template <class Qos> void set_meeting(Qos &qos, usi_meeting meeting) {
    if (meeting == USI_MEET_OWN) qos.presentation().ordered_access = true;
}

template <class Qos> void set_partition(Qos &qos, const std::string &names) {
    std::istringstream in(names);
    for (std::string name; std::getline(in, name, ',');)
        if (!name.empty()) qos.partition().push_back(name.c_str());
}

fast::Publisher *use_publisher(usi_vendor_participant *p, usi_meeting meeting, const char *partition) {
    const std::lock_guard<std::mutex> guard(p->lock);
    fast::Publisher *&publisher = p->publishers[{meeting, partition}];
    fast::PublisherQos qos = fast::PUBLISHER_QOS_DEFAULT;
    set_partition(qos, partition);
    set_meeting(qos, meeting);
    if (!publisher) publisher = p->participant->create_publisher(qos);
    return publisher;
}

fast::Subscriber *use_subscriber(usi_vendor_participant *p, usi_meeting meeting, const char *partition) {
    const std::lock_guard<std::mutex> guard(p->lock);
    fast::Subscriber *&subscriber = p->subscribers[{meeting, partition}];
    fast::SubscriberQos qos = fast::SUBSCRIBER_QOS_DEFAULT;
    set_partition(qos, partition);
    set_meeting(qos, meeting);
    if (!subscriber) subscriber = p->participant->create_subscriber(qos);
    return subscriber;
}

// With its first participant Fast DDS reads settings from a file DEFAULT_FASTRTPS_PROFILES.xml in the working directory, which may be a stranger's: its <log>
// empties and writes any file. So it looks for a name that is longer than names of files can be. The file that FASTRTPS_DEFAULT_PROFILES_FILE names is read.
void leave_working_directory_alone() {
    static const std::string no_name(256, '-');
    eprosima::fastrtps::xmlparser::DEFAULT_FASTRTPS_PROFILES = no_name.c_str();
}

us_status open_participant(const usi_vendor_open &def, usi_vendor_participant *p, us_error *err) {
    leave_working_directory_alone();
    fast::Log::ClearConsumers();
    auto *factory = fast::DomainParticipantFactory::get_instance();
    fast::DomainParticipantQos qos = make_participant_qos(def);
    const us_status status = use_server(def, qos, err);
    if (status) return status;
    p->is_secured = def.keys != nullptr;
    p->participant = factory->create_participant(static_cast<uint32_t>(def.domain), qos, &p->network, fast::StatusMask::none());
    if (!p->participant) {
        return set_error(err, US_ERR_IO, "Fast DDS cannot join domain " + std::to_string(def.domain),
                         def.keys ? "Look whether the keys are meant for this domain, and its permissions are not out of date: understudy keys list KEYSTORE."
                                  : "Look at the network interfaces of this machine and at FASTRTPS_DEFAULT_PROFILES_FILE if it is set.");
    }
    if (!use_publisher(p, USI_MEET_ALL, "") || !use_subscriber(p, USI_MEET_ALL, "")) return set_error(err, US_ERR_MEMORY, "Fast DDS cannot make a publisher and a subscriber", nullptr);
    p->network.add(to_id(p->participant->guid()), Peer{def.user_data, hostname(), 0});
    return US_OK;
}

us_status vendor_open(const usi_vendor_open *def, usi_vendor_participant **out, us_error *err) {
    try {
        auto *p = new usi_vendor_participant();
        const us_status status = open_participant(*def, p, err);
        if (status) {
            vendor_close(p);
            return status;
        }
        *out = p;
        return US_OK;
    } catch (const std::exception &e) {
        return set_error(err, US_ERR_MEMORY, std::string("Fast DDS: ") + e.what(), nullptr);
    }
}

void vendor_get_id(const usi_vendor_participant *p, uint8_t out_id[16]) {
    const Id id = to_id(p->participant->guid());
    std::memcpy(out_id, id.data(), id.size());
}

// ---- endpoints ----------------------------------------------------------------------------------------------------------

// Fast DDS wants one object per name of a type and of a topic, so they are shared and counted.
fast::Topic *use_topic(usi_vendor_participant *p, const usi_vendor_endpoint_def &def, us_error *err) {
    const std::lock_guard<std::mutex> guard(p->lock);
    auto type = p->types.find(def.type);
    if (type != p->types.end()) static_cast<ByteType *>(type->second.get())->set_key(def);
    const auto found = p->topics.find(def.topic);
    if (found != p->topics.end()) {
        if (found->second.topic->get_type_name() != def.type) {
            set_error(err, US_ERR_NAME,
                      std::string("Fast DDS allows one type per topic, and ") + def.topic + " has " + found->second.topic->get_type_name(),
                      "Use another topic for the other type, another bus, or the vendor cyclone.");
            return nullptr;
        }
        found->second.n_use++;
        return found->second.topic;
    }
    if (type == p->types.end()) {
        fast::TypeSupport support(new ByteType(def));
        if (support.register_type(p->participant) != ReturnCode_t::RETCODE_OK) {
            set_error(err, US_ERR_NAME, std::string("Fast DDS refuses the type ") + def.type, nullptr);
            return nullptr;
        }
        type = p->types.emplace(def.type, support).first;
    }
    fast::Topic *topic = p->participant->create_topic(def.topic, def.type, fast::TOPIC_QOS_DEFAULT);
    if (!topic) {
        set_error(err, US_ERR_NAME, std::string("Fast DDS refuses the topic ") + def.topic, nullptr);
        return nullptr;
    }
    p->topics[def.topic] = SharedTopic{topic, 1};
    return topic;
}

void leave_topic(usi_vendor_participant *p, const std::string &name) {
    const std::lock_guard<std::mutex> guard(p->lock);
    const auto found = p->topics.find(name);
    if (found == p->topics.end() || --found->second.n_use > 0) return;
    p->participant->delete_topic(found->second.topic);
    p->topics.erase(found);
}

eprosima::fastrtps::Duration_t duration_of(int64_t ns) { return {static_cast<int32_t>(ns / 1000000000), static_cast<uint32_t>(ns % 1000000000)}; }

// The policies that readers and writers have in common.
template <class Qos> void set_qos(Qos &qos, const usi_vendor_endpoint_def &def) {
    qos.reliability().kind = def.qos.is_reliable ? fast::RELIABLE_RELIABILITY_QOS : fast::BEST_EFFORT_RELIABILITY_QOS;
    qos.reliability().max_blocking_time = max_blocking;
    qos.durability().kind = def.qos.is_transient_local ? fast::TRANSIENT_LOCAL_DURABILITY_QOS : fast::VOLATILE_DURABILITY_QOS;
    qos.history().kind = def.qos.depth > 0 ? fast::KEEP_LAST_HISTORY_QOS : fast::KEEP_ALL_HISTORY_QOS;
    qos.history().depth = def.qos.depth > 0 ? def.qos.depth : 1;
    // Without keys there is one instance. A history that keeps all still needs an end: without one Fast DDS refuses to write at all.
    const int32_t limit = std::max(def.qos.depth, max_history);
    const bool is_keyed = def.key || def.is_keyed;
    qos.resource_limits().max_instances = is_keyed ? 0 : 1;
    qos.resource_limits().max_samples = is_keyed ? 0 : limit;
    qos.resource_limits().max_samples_per_instance = limit;
    qos.resource_limits().allocated_samples = 10;
    qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    qos.data_sharing().off();
    if (def.qos.is_exclusive) qos.ownership().kind = fast::EXCLUSIVE_OWNERSHIP_QOS;
    const Bytes user_data(def.user_data, def.user_data + std::strlen(def.user_data));
    qos.user_data().setValue(user_data);
    if (def.qos.deadline > 0) qos.deadline().period = duration_of(def.qos.deadline);
    qos.liveliness().kind = static_cast<fast::LivelinessQosPolicyKind>(def.qos.liveliness);
    if (def.qos.lease > 0) {
        qos.liveliness().lease_duration = duration_of(def.qos.lease);
        qos.liveliness().announcement_period = duration_of(def.qos.lease / 3);
    }
}

// The versions of CDR: a writer has one of them, a reader of the second reads both.
std::vector<fast::DataRepresentationId_t> versions_of(const usi_vendor_endpoint_def &def, bool is_writer) {
    if (!def.is_xcdr2) return {fast::XCDR_DATA_REPRESENTATION};
    if (is_writer) return {fast::XCDR2_DATA_REPRESENTATION};
    return {fast::XCDR2_DATA_REPRESENTATION, fast::XCDR_DATA_REPRESENTATION};
}

void announce_own(usi_vendor_endpoint *e, const usi_vendor_endpoint_def &def) {
    us_endpoint own;
    std::memset(&own, 0, sizeof own);
    own.is_writer = e->writer != nullptr;
    const Id participant = to_id(e->owner->participant->guid());
    std::memcpy(own.id, e->id.data(), e->id.size());
    std::memcpy(own.participant, participant.data(), participant.size());
    std::strncpy(own.topic, def.topic, sizeof own.topic - 1);
    std::strncpy(own.type, def.type, sizeof own.type - 1);
    const std::string data = def.user_data;
    if (data.rfind("typehash=", 0) == 0) std::strncpy(own.hash, data.substr(9, data.find(';') - 9).c_str(), sizeof own.hash - 1);
    own.qos = def.qos;
    std::memcpy(own.partitions, def.qos.partition, sizeof own.partitions);
    own.is_xcdr1 = true;
    own.dialect = US_DIALECT_FASTDDS;
    e->owner->network.add(own);
}

us_status add_endpoint(usi_vendor_participant *p, const usi_vendor_endpoint_def &def, bool is_writer, usi_vendor_endpoint **out, us_error *err) {
    fast::Topic *topic = use_topic(p, def, err);
    if (!topic) return US_ERR_NAME;
    auto e = std::make_unique<usi_vendor_endpoint>();
    e->owner = p;
    e->topic = def.topic;
    e->is_reliable = def.qos.is_reliable;
    e->meets_own = def.meeting == USI_MEET_OWN;
    e->is_keyed = def.key || def.is_keyed;
    e->has_ends = def.has_ends;
    e->on_sample = def.on_sample;
    e->on_data = def.on_data;
    e->context = def.context;
    if (is_writer) {
        fast::DataWriterQos qos = fast::DATAWRITER_QOS_DEFAULT;
        qos.data_sharing().off();  // shared memory of a process that is killed would stay for ever, 60 MB a topic
        set_qos(qos, def);
        if (def.qos.is_exclusive) qos.ownership_strength().value = static_cast<uint32_t>(std::max(def.qos.strength, 0));
        qos.representation().m_value = versions_of(def, true);
        if (def.qos.lifespan > 0) qos.lifespan().duration = duration_of(def.qos.lifespan);
        qos.writer_data_lifecycle().autodispose_unregistered_instances = false;
        qos.publish_mode().kind = fast::SYNCHRONOUS_PUBLISH_MODE;
        qos.reliable_writer_qos().times.heartbeatPeriod = heartbeat;
        if (def.meeting == USI_MEET_OWN) qos.latency_budget().duration = max_blocking;
        fast::Publisher *publisher = use_publisher(p, def.meeting, def.qos.partition);
        if (publisher) e->writer = publisher->create_datawriter(topic, qos, e.get(), fast::StatusMask::publication_matched());
    } else {
        fast::DataReaderQos qos = fast::DATAREADER_QOS_DEFAULT;
        qos.data_sharing().off();
        set_qos(qos, def);
        qos.type_consistency().representation.m_value = versions_of(def, false);
        qos.expects_inline_qos(def.is_keyed);  // the hash of a key that is not known
        if (def.meeting == USI_MEET_OWN) qos.latency_budget().duration = eprosima::fastrtps::c_TimeInfinite;
        fast::Subscriber *subscriber = use_subscriber(p, def.meeting, def.qos.partition);
        if (subscriber) e->reader = subscriber->create_datareader(topic, qos, e.get(), fast::StatusMask::data_available() << fast::StatusMask::subscription_matched());
    }
    if (!e->writer && !e->reader) {
        leave_topic(p, def.topic);
        return set_error(err, US_ERR_IO, std::string("Fast DDS cannot make a ") + (is_writer ? "writer" : "reader") + " of " + def.topic,
                         p->is_secured ? "The permissions of this enclave may not allow it: understudy keys add KEYSTORE ENCLAVE --publish or --subscribe TOPIC."
                                       : nullptr);
    }
    e->id = to_id(is_writer ? e->writer->guid() : e->reader->guid());
    announce_own(e.get(), def);
    *out = e.release();
    return US_OK;
}

us_status vendor_add_writer(usi_vendor_participant *p, const usi_vendor_endpoint_def *def, usi_vendor_endpoint **out, us_error *err) {
    try {
        return add_endpoint(p, *def, true, out, err);
    } catch (const std::exception &e) {
        return set_error(err, US_ERR_MEMORY, std::string("Fast DDS: ") + e.what(), nullptr);
    }
}

us_status vendor_add_reader(usi_vendor_participant *p, const usi_vendor_endpoint_def *def, usi_vendor_endpoint **out, us_error *err) {
    try {
        return add_endpoint(p, *def, false, out, err);
    } catch (const std::exception &e) {
        return set_error(err, US_ERR_MEMORY, std::string("Fast DDS: ") + e.what(), nullptr);
    }
}

void vendor_get_endpoint_id(const usi_vendor_endpoint *e, uint8_t out_id[16]) { std::memcpy(out_id, e->id.data(), e->id.size()); }

int64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

void vendor_set_linger(usi_vendor_participant *p, int64_t until) { p->linger_until = until; }

// How long the removal of a writer may wait now.
eprosima::fastrtps::Duration_t linger_of(const usi_vendor_participant *p) {
    const int64_t until = p->linger_until;
    if (until == 0) return linger;
    const int64_t left = std::clamp<int64_t>(until - monotonic_ns(), 0, 1000000000);
    return {static_cast<int32_t>(left / 1000000000), static_cast<uint32_t>(left % 1000000000)};
}

void vendor_remove(usi_vendor_endpoint *e) {
    {
        const std::lock_guard<std::mutex> guard(e->callback_lock);
        e->is_closed = true;
    }
    usi_vendor_participant *p = e->owner;
    p->network.remove(e->id);
    if (e->writer) {
        // What was written last may still be under way. The first reader that does not answer ends the waiting for all.
        if (e->n_stranger() > 0) {
            e->writer->wait_for_acknowledgments({0, 20000000});  // strangers do not acknowledge
        } else if (e->is_reliable && !p->has_deaf_reader) {
            p->has_deaf_reader = e->writer->wait_for_acknowledgments(linger_of(p)) != ReturnCode_t::RETCODE_OK;
        }
        e->writer->set_listener(nullptr);
        // Fast DDS empties the history while its timer may look for holes in it, and then finds no end: nothing must be left.
        e->writer->clear_history(nullptr);
        const_cast<fast::Publisher *>(e->writer->get_publisher())->delete_datawriter(e->writer);
    }
    if (e->reader) {
        e->reader->set_listener(nullptr);
        const_cast<fast::Subscriber *>(e->reader->get_subscriber())->delete_datareader(e->reader);
    }
    leave_topic(p, e->topic);
    delete e;
}

// ---- samples ------------------------------------------------------------------------------------------------------------

Carried carry(const void *bytes, size_t length) {
    Carried data;
    data.bytes = bytes;
    data.length = length;
    return data;
}

us_status vendor_write(usi_vendor_endpoint *e, const void *bytes, size_t length, int64_t source_time) {
    try {
        Carried data = carry(bytes, length);
        rtps::WriteParams params;
        if (source_time) {
            rtps::Time_t stamp;
            stamp.from_ns(source_time);
            params.source_timestamp(stamp);
        }
        return e->writer->write(&data, params) ? US_OK : US_ERR_LIMIT;
    } catch (const std::exception &) {
        return US_ERR_MEMORY;
    }
}

int64_t to_int(const rtps::SequenceNumber_t &number) { return static_cast<int64_t>(number.to64long()); }

void relate(rtps::WriteParams &params, const uint8_t writer[16], int64_t sequence) {
    rtps::GUID_t guid;
    std::memcpy(guid.guidPrefix.value, writer, 12);
    std::memcpy(guid.entityId.value, writer + 12, 4);
    params.related_sample_identity().writer_guid(guid);
    const auto number = static_cast<uint64_t>(sequence);
    params.related_sample_identity().sequence_number() = rtps::SequenceNumber_t(static_cast<int32_t>(number >> 32), static_cast<uint32_t>(number));
}

us_status vendor_write_related(usi_vendor_endpoint *e, const void *bytes, size_t length, const usi_sample_id *related, int64_t *out_sequence) {
    try {
        Carried data = carry(bytes, length);
        rtps::WriteParams params;
        relate(params, related->writer, related->sequence);
        if (!e->writer->write(&data, params)) return US_ERR_LIMIT;
        *out_sequence = to_int(params.sample_identity().sequence_number());
        return US_OK;
    } catch (const std::exception &) {
        return US_ERR_MEMORY;
    }
}

// The end of an instance. It has to be known to the history, which may not have seen any data of it.
us_status write_end(usi_vendor_endpoint *e, Carried &data, const us_sample &sample) {
    rtps::InstanceHandle_t handle;
    if (!e->writer->get_type()->getKey(&data, &handle, false) || handle == unknown_instance()) return US_ERR_SYNTAX;
    if (e->writer->register_instance(&data) != handle) return US_ERR_LIMIT;
    bool is_done = true;
    if (sample.kind != US_SAMPLE_UNREGISTERED) is_done = e->writer->dispose(&data, handle) == ReturnCode_t::RETCODE_OK;
    if (sample.kind != US_SAMPLE_DISPOSED) is_done = is_done && e->writer->unregister_instance(&data, handle) == ReturnCode_t::RETCODE_OK;
    return is_done ? US_OK : US_ERR_LIMIT;
}

us_status vendor_write_sample(usi_vendor_endpoint *e, const us_sample *sample, int64_t *out_sequence) {
    static const uint8_t none[16] = {0};
    *out_sequence = 0;
    try {
        Carried data = carry(sample->bytes, sample->length);
        data.is_key_alone = sample->kind != US_SAMPLE_DATA;
        data.has_hash = sample->has_key_hash;
        std::copy(sample->key_hash, sample->key_hash + data.hash.size(), data.hash.begin());
        if (data.is_key_alone) return write_end(e, data, *sample);
        // The hash goes out with the sample: a wrong one would make one instance of all.
        rtps::InstanceHandle_t handle;
        if (e->is_keyed && (!e->writer->get_type()->getKey(&data, &handle, false) || handle == unknown_instance())) return US_ERR_SYNTAX;
        rtps::WriteParams params;
        if (sample->source_time) {
            rtps::Time_t stamp;
            stamp.from_ns(sample->source_time);
            params.source_timestamp(stamp);
        }
        if (std::memcmp(sample->related_writer, none, sizeof none) != 0) relate(params, sample->related_writer, sample->related_sequence);
        if (!e->writer->write(&data, params)) return US_ERR_LIMIT;
        *out_sequence = to_int(params.sample_identity().sequence_number());
        return US_OK;
    } catch (const std::exception &) {
        return US_ERR_MEMORY;
    }
}

us_sample make_sample(const Carried &data, const fast::SampleInfo &info) {
    us_sample sample{};
    sample.bytes = data.bytes;
    sample.length = data.length;
    sample.source_time = info.source_timestamp.to_ns();
    const Id id = to_id(info.sample_identity.writer_guid());
    std::memcpy(sample.writer, id.data(), id.size());
    sample.sequence = to_int(info.sample_identity.sequence_number());
    if (info.related_sample_identity.writer_guid() != rtps::GUID_t::unknown()) {
        const Id related = to_id(info.related_sample_identity.writer_guid());
        std::memcpy(sample.related_writer, related.data(), related.size());
        sample.related_sequence = to_int(info.related_sample_identity.sequence_number());
    }
    sample.has_key_hash = info.instance_handle.isDefined() && info.instance_handle != unknown_instance();
    for (int i = 0; i < 16 && sample.has_key_hash; i++) sample.key_hash[i] = info.instance_handle.value[i];
    if (info.valid_data) return sample;
    sample.kind = info.instance_state == fast::NOT_ALIVE_DISPOSED_INSTANCE_STATE ? US_SAMPLE_DISPOSED : US_SAMPLE_UNREGISTERED;
    sample.length = 0;
    return sample;
}

// Makes the next sample wait in *e, whose take_lock is held. False when there is none.
bool fetch(usi_vendor_endpoint *e) {
    while (!e->has_waiting) {
        if (e->reader->take_next_sample(&e->waiting, &e->waiting_info) != ReturnCode_t::RETCODE_OK) return false;
        e->has_waiting = e->waiting_info.valid_data && !e->is_stranger(to_id(e->waiting_info.sample_identity.writer_guid()));
    }
    return true;
}

us_status vendor_take(usi_vendor_endpoint *e, void *buf, size_t cap, size_t *out_length, us_sample *out_sample) {
    *out_length = 0;
    try {
        const std::lock_guard<std::mutex> guard(e->take_lock);
        if (!fetch(e)) return US_OK;
        us_sample sample = make_sample(e->waiting, e->waiting_info);
        *out_length = sample.length;
        if (sample.length > cap) return US_ERR_LIMIT;
        std::memcpy(buf, sample.bytes, sample.length);
        sample.bytes = buf;
        if (out_sample) *out_sample = sample;
        e->has_waiting = false;
        return US_OK;
    } catch (const std::exception &) {
        return US_ERR_MEMORY;
    }
}

bool vendor_has_sample(usi_vendor_endpoint *e) {
    try {
        const std::lock_guard<std::mutex> guard(e->take_lock);
        return fetch(e);
    } catch (const std::exception &) {
        return false;
    }
}

int32_t vendor_n_match(usi_vendor_endpoint *e) {
    if (e->writer) {
        fast::PublicationMatchedStatus status;
        return e->writer->get_publication_matched_status(status) == ReturnCode_t::RETCODE_OK ? status.current_count - e->n_stranger() : 0;
    }
    fast::SubscriptionMatchedStatus status;
    return e->reader->get_subscription_matched_status(status) == ReturnCode_t::RETCODE_OK ? status.current_count - e->n_stranger() : 0;
}

// ---- the network --------------------------------------------------------------------------------------------------------

us_status vendor_list(usi_vendor_participant *p, usi_visit_endpoint *visit, void *context) {
    try {
        p->network.list(visit, context);
        return US_OK;
    } catch (const std::exception &) {
        return US_ERR_MEMORY;
    }
}

us_status vendor_list_participants(usi_vendor_participant *p, usi_visit_peer *visit, void *context) {
    try {
        p->network.list(visit, context);
        return US_OK;
    } catch (const std::exception &) {
        return US_ERR_MEMORY;
    }
}

us_status vendor_watch_writers(usi_vendor_participant *p, usi_visit_endpoint *visit, void *context) {
    try {
        p->network.watch(visit, context);
        return US_OK;
    } catch (const std::exception &) {
        return US_ERR_MEMORY;
    }
}

}  // namespace

namespace understudy {

Id to_id(const rtps::GUID_t &guid) {
    Id id;
    std::memcpy(id.data(), guid.guidPrefix.value, 12);
    std::memcpy(id.data() + 12, guid.entityId.value, 4);
    return id;
}

us_status set_error(us_error *err, us_status code, const std::string &message, const char *remedy) {
    if (!err) return code;
    std::memset(err, 0, sizeof *err);
    err->code = code;
    std::strncpy(err->message, message.c_str(), sizeof err->message - 1);
    if (remedy) std::strncpy(err->remedy, remedy, sizeof err->remedy - 1);
    return code;
}

}  // namespace understudy

bool usi_vendor_endpoint::is_stranger(const Id &other) const { return meets_own && owner->network.dialect_of(other) == US_DIALECT_CYCLONE; }

int32_t usi_vendor_endpoint::n_stranger() {
    const std::lock_guard<std::mutex> guard(stranger_lock);
    return static_cast<int32_t>(strangers.size());
}

// What ends a match may be forgotten by then.
void usi_vendor_endpoint::note_match(const rtps::InstanceHandle_t &handle, int32_t change) {
    Id other;
    for (size_t i = 0; i < other.size(); i++) other[i] = handle.value[i];
    const bool is_begun = change > 0 && is_stranger(other);
    const std::lock_guard<std::mutex> guard(stranger_lock);
    if (is_begun) strangers.insert(other);
    if (change < 0) strangers.erase(other);
}

void usi_vendor_endpoint::on_subscription_matched(fast::DataReader * /*from*/, const fast::SubscriptionMatchedStatus &status) {
    note_match(status.last_publication_handle, status.current_count_change);
}

void usi_vendor_endpoint::on_publication_matched(fast::DataWriter * /*from*/, const fast::PublicationMatchedStatus &status) {
    note_match(status.last_subscription_handle, status.current_count_change);
}

void usi_vendor_endpoint::on_data_available(fast::DataReader *from) {
    const std::lock_guard<std::mutex> guard(callback_lock);
    if (is_closed) return;
    if (!on_sample) {
        on_data(context);
        return;
    }
    try {
        // The memory of one sample serves for all.
        while (from->take_next_sample(&waiting, &waiting_info) == ReturnCode_t::RETCODE_OK) {
            if (!waiting_info.valid_data && !has_ends) continue;
            const us_sample sample = make_sample(waiting, waiting_info);
            if (is_stranger(to_id(waiting_info.sample_identity.writer_guid()))) continue;
            on_sample(context, &sample);
        }
    } catch (const std::exception &) {
        // No memory for it: the sample is lost, as it would be in a full history.
    }
}

extern "C" __attribute__((visibility("default"))) const usi_vendor *usi_vendor_table();

extern "C" const usi_vendor *usi_vendor_table() {
    static const usi_vendor table = {
        USI_VENDOR_ABI,    sizeof(usi_vendor),       "fastdds",     vendor_open,  vendor_close, vendor_get_id,     vendor_add_writer,
        vendor_add_reader, vendor_get_endpoint_id,   vendor_remove, vendor_set_linger, vendor_write, vendor_take, vendor_has_sample,
        vendor_n_match,    vendor_list,              vendor_list_participants, nullptr, nullptr, nullptr,
        vendor_write_related, vendor_watch_writers, vendor_write_sample,
    };
    return &table;
}
