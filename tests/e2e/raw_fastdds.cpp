// A program of somebody else: plain Fast DDS, and a type with a key that Understudy does not know; as raw_cyclone, with rt/k10/track alone.
//
//     raw_fastdds DOMAIN write N
//     raw_fastdds DOMAIN read
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "fastdds_join.hpp"

using eprosima::fastrtps::types::ReturnCode_t;

namespace {

constexpr int n_instance = 5;

struct Track {
    int32_t id = 0;
    std::string text;
};

// The bytes of plain CDR: id, length of the text with its 0, text.
struct TrackType : public fast::TopicDataType {
    TrackType() {
        setName("raw::Track");
        m_typeSize = 256;
        m_isGetKeyDefined = true;
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }
    bool serialize(void *data, rtps::SerializedPayload_t *payload) override {
        const auto *from = static_cast<const Track *>(data);
        const auto n = static_cast<uint32_t>(from->text.size() + 1);
        std::memcpy(payload->data, "\0\1\0\0", 4);
        std::memcpy(payload->data + 4, &from->id, 4);
        std::memcpy(payload->data + 8, &n, 4);
        std::memcpy(payload->data + 12, from->text.c_str(), n);
        payload->length = (12 + n + 3) / 4 * 4;
        payload->encapsulation = 1;
        return true;
    }
    bool deserialize(rtps::SerializedPayload_t *payload, void *data) override {
        auto *to = static_cast<Track *>(data);
        if (payload->length < 13) return false;
        std::memcpy(&to->id, payload->data + 4, 4);
        to->text.assign(reinterpret_cast<const char *>(payload->data + 12));
        return true;
    }
    std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
        const auto length = static_cast<uint32_t>(16 + static_cast<const Track *>(data)->text.size());
        return [length]() { return length; };
    }
    void *createData() override { return new Track(); }
    void deleteData(void *data) override { delete static_cast<Track *>(data); }
    bool getKey(void *data, rtps::InstanceHandle_t *handle, bool /*force_md5*/) override {
        const auto id = static_cast<uint32_t>(static_cast<const Track *>(data)->id);
        for (int i = 0; i < 16; i++) handle->value[i] = static_cast<uint8_t>(i < 4 ? id >> (24 - 8 * i) : 0);
        return true;
    }
};

bool is_over() {
    pollfd in = {0, POLLIN, 0};
    return poll(&in, 1, 0) != 0;
}

template <class Qos> void set_qos(Qos &qos) {
    qos.reliability().kind = fast::RELIABLE_RELIABILITY_QOS;
    qos.history().kind = fast::KEEP_ALL_HISTORY_QOS;
    qos.resource_limits().max_samples = 10000;
    qos.resource_limits().max_instances = 10;
    qos.resource_limits().max_samples_per_instance = 1000;
    qos.deadline().period = eprosima::fastrtps::Duration_t(30, 0);
    qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    qos.data_sharing().off();
}

int write_all(fast::DataWriter *writer, int n) {
    for (fast::PublicationMatchedStatus out; !is_over() && out.current_count == 0; usleep(5000)) writer->get_publication_matched_status(out);
    usleep(1500000);  // the switch's own way to the operators takes a moment more
    Track track;
    for (int i = 0; i < n && !is_over(); i++) {
        track.id = i % n_instance;
        track.text = "t" + std::to_string(i);
        if (!writer->write(&track)) return 1;
        if (i % 20 == 0) usleep(2000);
    }
    track.id = 2;
    if (writer->dispose(&track, rtps::InstanceHandle_t()) != ReturnCode_t::RETCODE_OK) return 1;
    track.id = 3;
    if (writer->unregister_instance(&track, rtps::InstanceHandle_t()) != ReturnCode_t::RETCODE_OK) return 1;
    writer->wait_for_acknowledgments(eprosima::fastrtps::Duration_t(10, 0));
    std::printf("written\n");
    std::fflush(stdout);
    while (!is_over()) usleep(20000);
    return 0;
}

const char *name_state(fast::InstanceStateKind state) {
    if (state == fast::ALIVE_INSTANCE_STATE) return "alive";
    return state == fast::NOT_ALIVE_DISPOSED_INSTANCE_STATE ? "disposed" : "unregistered";
}

int read_all(fast::DataReader *reader) {
    while (!is_over()) {
        Track track;
        fast::SampleInfo info;
        if (reader->take_next_sample(&track, &info) != ReturnCode_t::RETCODE_OK) {
            usleep(1000);
            continue;
        }
        // An end has its key as the hash alone.
        int32_t id = 0;
        for (int i = 0; i < 4; i++) id = id << 8 | info.instance_handle.value[i];
        std::printf("track %s %d %s %s\n", info.valid_data ? "data" : "end", id, info.valid_data ? track.text.c_str() : "-", name_state(info.instance_state));
        std::fflush(stdout);
    }
    return 0;
}

}  // namespace

int main(int n, char **arguments) {
    if (n < 3) return 2;
    fast::DomainParticipant *p = join_on_loopback(static_cast<uint32_t>(std::strtoul(arguments[1], nullptr, 10)));
    if (!p) return 1;
    fast::TypeSupport type(new TrackType());
    type.register_type(p);
    fast::Topic *topic = p->create_topic("rt/k10/track", "raw::Track", fast::TOPIC_QOS_DEFAULT);
    const bool is_writer = std::strcmp(arguments[2], "write") == 0;
    fast::DataWriterQos writer_qos = fast::DATAWRITER_QOS_DEFAULT;
    fast::DataReaderQos reader_qos = fast::DATAREADER_QOS_DEFAULT;
    set_qos(writer_qos);
    set_qos(reader_qos);
    writer_qos.representation().m_value = {fast::XCDR_DATA_REPRESENTATION};
    reader_qos.type_consistency().representation.m_value = {fast::XCDR_DATA_REPRESENTATION};
    writer_qos.writer_data_lifecycle().autodispose_unregistered_instances = false;
    fast::DataWriter *writer = is_writer ? p->create_publisher(fast::PUBLISHER_QOS_DEFAULT)->create_datawriter(topic, writer_qos) : nullptr;
    fast::DataReader *reader = is_writer ? nullptr : p->create_subscriber(fast::SUBSCRIBER_QOS_DEFAULT)->create_datareader(topic, reader_qos);
    if (!writer && !reader) return 1;
    std::printf("ready\n");
    std::fflush(stdout);
    return is_writer ? write_all(writer, n > 3 ? std::atoi(arguments[3]) : 100) : read_all(reader);
}
