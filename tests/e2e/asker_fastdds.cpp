// A program that asks and answers as rmw_fastrtps does, on Fast DDS and nothing of ours: the message alone is written, and who asks, with which number, stands
// beside it. Messages are bytes here: one text of 4 characters, "a" and a number.
//
//     asker_fastdds DOMAIN ask N      asks /test/echo N times and prints "answered N wrong 0" when each number was answered once, by its own text
//     asker_fastdds DOMAIN serve      answers /test/echo with what was asked, until its standard input ends
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/common/WriteParams.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "fastdds_join.hpp"

using eprosima::fastrtps::types::ReturnCode_t;
using Bytes = std::vector<uint8_t>;

namespace {

struct ByteType : public fast::TopicDataType {
    explicit ByteType(const char *name) {
        setName(name);
        m_typeSize = 256;
        m_isGetKeyDefined = false;
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }
    bool serialize(void *data, rtps::SerializedPayload_t *payload) override {
        const auto *from = static_cast<const Bytes *>(data);
        if (payload->max_size < from->size()) return false;
        std::memcpy(payload->data, from->data(), from->size());
        payload->length = static_cast<uint32_t>(from->size());
        payload->encapsulation = payload->data[1];
        return true;
    }
    bool deserialize(rtps::SerializedPayload_t *payload, void *data) override {
        static_cast<Bytes *>(data)->assign(payload->data, payload->data + payload->length);
        return true;
    }
    std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
        const auto length = static_cast<uint32_t>(static_cast<const Bytes *>(data)->size());
        return [length]() { return length; };
    }
    void *createData() override { return new Bytes(); }
    void deleteData(void *data) override { delete static_cast<Bytes *>(data); }
    bool getKey(void * /*data*/, rtps::InstanceHandle_t * /*handle*/, bool /*force_md5*/) override { return false; }
};

template <class Qos> void set_qos(Qos &qos) {
    qos.reliability().kind = fast::RELIABLE_RELIABILITY_QOS;
    qos.history().kind = fast::KEEP_LAST_HISTORY_QOS;
    qos.history().depth = 1000;
    qos.resource_limits().max_samples = 1000;
    qos.resource_limits().max_samples_per_instance = 1000;
    qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    qos.data_sharing().off();
}

struct Ends {
    fast::DataWriter *writer = nullptr;
    fast::DataReader *reader = nullptr;
};

Ends make_ends(fast::DomainParticipant *p, bool is_client) {
    const std::string type = "rcl_interfaces::srv::dds_::GetParameters_";
    fast::TypeSupport request(new ByteType((type + "Request_").c_str())), reply(new ByteType((type + "Response_").c_str()));
    request.register_type(p);
    reply.register_type(p);
    fast::Topic *ask = p->create_topic("rq/test/echoRequest", type + "Request_", fast::TOPIC_QOS_DEFAULT);
    fast::Topic *answer = p->create_topic("rr/test/echoReply", type + "Response_", fast::TOPIC_QOS_DEFAULT);
    fast::DataWriterQos writer_qos = fast::DATAWRITER_QOS_DEFAULT;
    fast::DataReaderQos reader_qos = fast::DATAREADER_QOS_DEFAULT;
    set_qos(writer_qos);
    set_qos(reader_qos);
    writer_qos.reliable_writer_qos().times.heartbeatPeriod = eprosima::fastrtps::Duration_t(0, 100000000);
    Ends e;
    e.reader = p->create_subscriber(fast::SUBSCRIBER_QOS_DEFAULT)->create_datareader(is_client ? answer : ask, reader_qos);
    e.writer = p->create_publisher(fast::PUBLISHER_QOS_DEFAULT)->create_datawriter(is_client ? ask : answer, writer_qos);
    return e;
}

int64_t to_int(const rtps::SequenceNumber_t &n) { return static_cast<int64_t>(n.to64long()); }

int ask(const Ends &e, int count) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    int n_match = 0;
    while (n_match == 0 && std::chrono::steady_clock::now() < until) {
        fast::PublicationMatchedStatus out;
        fast::SubscriptionMatchedStatus in;
        e.writer->get_publication_matched_status(out);
        e.reader->get_subscription_matched_status(in);
        n_match = out.current_count == in.current_count ? out.current_count : 0;
        usleep(1000);
    }
    std::map<int64_t, int> asked;
    int n_answer = 0, n_wrong = 0;
    for (int i = 0; n_answer < count && std::chrono::steady_clock::now() < until;) {
        if (i < count && i - n_answer < 50) {
            // A sequence of one text of 4 characters, and the 0 at its end.
            Bytes request = {0, 1, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 'a', static_cast<uint8_t>('0' + i / 100 % 10), static_cast<uint8_t>('0' + i / 10 % 10),
                             static_cast<uint8_t>('0' + i % 10), 0, 0, 0, 0};
            rtps::WriteParams params;
            params.related_sample_identity().writer_guid(e.reader->guid());
            if (e.writer->write(&request, params)) asked[to_int(params.sample_identity().sequence_number())] = i++;
        }
        Bytes reply;
        fast::SampleInfo info;
        if (e.reader->take_next_sample(&reply, &info) != ReturnCode_t::RETCODE_OK) {
            usleep(200);
            continue;
        }
        const auto &related = info.related_sample_identity;
        const auto found = asked.find(to_int(related.sequence_number()));
        const bool is_mine = related.writer_guid() == e.reader->guid() || related.writer_guid() == e.writer->guid();
        // The answer is one value: behind the number of values its type, a bool, and the whole number at a multiple of 8.
        const bool is_good = is_mine && found != asked.end() && reply.size() > 24 && reply[12] + 256 * reply[13] == found->second;
        if (is_good) {
            asked.erase(found);
            n_answer++;
        } else {
            n_wrong++;
        }
    }
    std::printf("answered %d wrong %d matched %d\n", n_answer, n_wrong, n_match);
    return 0;
}

int serve(const Ends &e) {
    for (pollfd in = {0, POLLIN, 0}; poll(&in, 1, 0) == 0;) {
        Bytes request;
        fast::SampleInfo info;
        if (e.reader->take_next_sample(&request, &info) != ReturnCode_t::RETCODE_OK) {
            usleep(200);
            continue;
        }
        rtps::WriteParams params;
        params.related_sample_identity() = info.sample_identity;
        const auto reader = info.related_sample_identity.writer_guid();
        if (reader != rtps::GUID_t::unknown()) params.related_sample_identity().writer_guid(reader);
        // No values.
        Bytes reply = {0, 1, 0, 0, 0, 0, 0, 0};
        e.writer->write(&reply, params);
    }
    return 0;
}

}  // namespace

int main(int n, char **arguments) {
    if (n < 3) return 2;
    fast::DomainParticipant *participant = join_on_loopback(static_cast<uint32_t>(std::strtoul(arguments[1], nullptr, 10)));
    if (!participant) return 1;
    const bool is_client = std::strcmp(arguments[2], "ask") == 0;
    const Ends ends = make_ends(participant, is_client);
    if (!ends.writer || !ends.reader) return 1;
    std::printf("ready\n");
    std::fflush(stdout);
    return is_client ? ask(ends, n > 3 ? std::atoi(arguments[3]) : 1) : serve(ends);
}
