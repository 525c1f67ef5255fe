// A program of somebody else: plain Fast DDS with the settings that rmw_fastrtps_cpp of ROS 2 gives it, and nothing of ours. The twin of
// meet_cyclone.c, which says what it does.
//
//     meet_fastdds humble|jazzy DOMAIN OUT IN
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>

namespace fast = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;
using eprosima::fastdds::rtps::SharedMemTransportDescriptor;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;
using eprosima::fastrtps::types::ReturnCode_t;

namespace {

// std_msgs/String as plain CDR, little endian.
class StringType : public fast::TopicDataType {
  public:
    StringType() {
        setName("std_msgs::msg::dds_::String_");
        m_typeSize = 256;
        m_isGetKeyDefined = false;
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }
    bool serialize(void *data, rtps::SerializedPayload_t *payload) override {
        const auto &text = *static_cast<std::string *>(data);
        const auto n = static_cast<uint32_t>(text.size() + 1);
        const unsigned char header[8] = {0, 1, 0, 0, static_cast<unsigned char>(n), 0, 0, 0};
        std::memcpy(payload->data, header, sizeof header);
        std::memcpy(payload->data + 8, text.c_str(), n);
        payload->length = 8 + n;
        payload->encapsulation = CDR_LE;
        return true;
    }
    bool deserialize(rtps::SerializedPayload_t *payload, void *data) override {
        if (payload->length < 9) return false;
        *static_cast<std::string *>(data) = reinterpret_cast<const char *>(payload->data + 8);
        return true;
    }
    std::function<uint32_t()> getSerializedSizeProvider(void *) override {
        return [] { return 256U; };
    }
    void *createData() override { return new std::string(); }
    void deleteData(void *data) override { delete static_cast<std::string *>(data); }
    bool getKey(void *, rtps::InstanceHandle_t *, bool) override { return false; }
};

std::string get(const char *name) {
    const char *value = std::getenv(name);
    return value ? value : "";
}

rtps::Locator_t address(const std::string &text) {
    rtps::Locator_t locator;
    if (!rtps::IPLocator::isIPv4(text)) {
        const auto found = rtps::IPLocator::resolveNameDNS(text);
        if (!found.first.empty()) rtps::IPLocator::setIPv4(locator, *found.first.begin());
    } else {
        rtps::IPLocator::setIPv4(locator, text);
    }
    return locator;
}

void set_humble(fast::DomainParticipantQos &qos) {
    if (get("ROS_LOCALHOST_ONLY") != "1") return;
    qos.transport().use_builtin_transports = false;
    auto udp = std::make_shared<UDPv4TransportDescriptor>();
    udp->interfaceWhiteList.emplace_back("127.0.0.1");
    qos.transport().user_transports.push_back(udp);
    qos.transport().user_transports.push_back(std::make_shared<SharedMemTransportDescriptor>());
}

// Since Iron.
void set_jazzy(fast::DomainParticipantQos &qos) {
    auto &builtin = qos.wire_protocol().builtin;
    std::string range = get("ROS_AUTOMATIC_DISCOVERY_RANGE"), peers = get("ROS_STATIC_PEERS");
    if (range.empty()) range = "SUBNET";
    if (get("ROS_LOCALHOST_ONLY") == "1") {
        range = "LOCALHOST";
        peers = "";
    }
    if (range == "OFF") qos.allocation().participants = eprosima::fastrtps::ResourceLimitedContainerConfig(1, 1, 0);
    if (range == "OFF" || range == "LOCALHOST") {
        builtin.metatrafficMulticastLocatorList.clear();
        builtin.metatrafficUnicastLocatorList.push_back(rtps::Locator_t());
    }
    if (range == "LOCALHOST") {
        qos.transport().use_builtin_transports = false;
        qos.transport().user_transports.push_back(std::make_shared<SharedMemTransportDescriptor>());
        auto udp = std::make_shared<UDPv4TransportDescriptor>();
        udp->maxInitialPeersRange = 32;
        qos.transport().user_transports.push_back(udp);
    }
    if (range == "LOCALHOST" || range == "SUBNET") {
        std::istringstream list(peers);
        for (std::string peer; std::getline(list, peer, ';');) {
            if (!peer.empty()) builtin.initialPeersList.push_back(address(peer));
        }
    }
    if (range == "LOCALHOST") builtin.initialPeersList.push_back(address("127.0.0.1"));
    if (range == "SUBNET" && !builtin.initialPeersList.empty()) builtin.initialPeersList.push_back(address("239.255.0.1"));
}

template <class Qos> void set_qos(Qos &qos) {
    qos.reliability().kind = fast::RELIABLE_RELIABILITY_QOS;
    qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    qos.data_sharing().off();
}

}  // namespace

int main(int n, char **arguments) {
    if (n != 5) return 2;
    fast::Log::ClearConsumers();
    fast::DomainParticipantQos qos = fast::PARTICIPANT_QOS_DEFAULT;
    if (std::strcmp(arguments[1], "humble") == 0)
        set_humble(qos);
    else
        set_jazzy(qos);
    auto *factory = fast::DomainParticipantFactory::get_instance();
    auto *participant = factory->create_participant(static_cast<uint32_t>(std::strtoul(arguments[2], nullptr, 10)), qos);
    if (!participant) return 1;
    fast::TypeSupport type(new StringType());
    type.register_type(participant);
    const std::string prefix = "rt/meet/";
    auto *out = participant->create_topic(prefix + arguments[3], type.get_type_name(), fast::TOPIC_QOS_DEFAULT);
    auto *in = participant->create_topic(prefix + arguments[4], type.get_type_name(), fast::TOPIC_QOS_DEFAULT);
    fast::DataWriterQos writer_qos = fast::DATAWRITER_QOS_DEFAULT;
    set_qos(writer_qos);
    fast::DataReaderQos reader_qos = fast::DATAREADER_QOS_DEFAULT;
    set_qos(reader_qos);
    auto *writer = participant->create_publisher(fast::PUBLISHER_QOS_DEFAULT)->create_datawriter(out, writer_qos);
    auto *reader = participant->create_subscriber(fast::SUBSCRIBER_QOS_DEFAULT)->create_datareader(in, reader_qos);
    if (!writer || !reader) return 1;
    std::printf("ready\n");
    std::fflush(stdout);
    bool has_met = false, is_heard = false;
    struct pollfd end = {STDIN_FILENO, POLLIN, 0};
    while (poll(&end, 1, 10) == 0) {
        std::string text = "here", heard;
        fast::SampleInfo info;
        while (reader->take_next_sample(&heard, &info) == ReturnCode_t::RETCODE_OK) is_heard = is_heard || (info.valid_data && heard == text);
        fast::PublicationMatchedStatus status;
        writer->get_publication_matched_status(status);
        if (status.current_count > 0) writer->write(&text);
        if (has_met || !is_heard || status.current_count == 0) continue;
        has_met = true;
        std::printf("met\n");
        std::fflush(stdout);
    }
    participant->delete_contained_entities();
    factory->delete_participant(participant);
    return 0;
}
