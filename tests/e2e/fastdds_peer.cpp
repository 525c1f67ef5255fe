// A program of somebody else: Fast DDS with the code that its own compiler makes of idl/*.idl, and nothing of ours.
//
// For every type it reads rt/to_peer/PACKAGE_TYPE into the generated struct and writes that struct on rt/from_peer/PACKAGE_TYPE.
// What comes back whole has been understood member by member, and can be read. Samples of all topics are reliable and none is
// dropped. It says "ready" when it has joined, and ends with its standard input.
//
//     fastdds_peer DOMAIN
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fastdds_join.hpp"
#include "peer_includes.h"

using eprosima::fastrtps::types::ReturnCode_t;

namespace {

std::mutex wake_lock;
std::condition_variable wake;
bool is_awake = false;

void wake_up() {
    const std::lock_guard<std::mutex> guard(wake_lock);
    is_awake = true;
    wake.notify_one();
}

// Echoing happens on one thread that belongs to nobody: a write that waits for an acknowledgement must not wait on the thread that receives it.
struct Echo : public fast::DataReaderListener {
    fast::TypeSupport type;
    fast::DataReader *reader = nullptr;
    fast::DataWriter *writer = nullptr;
    void *data = nullptr;
    int n_lost = 0;

    void on_data_available(fast::DataReader * /*from*/) override { wake_up(); }

    void run() {
        fast::SampleInfo info;
        while (reader->take_next_sample(data, &info) == ReturnCode_t::RETCODE_OK) {
            if (info.valid_data && !writer->write(data) && n_lost++ == 0) std::fprintf(stderr, "%s was not sent\n", type.get_type_name().c_str());
        }
    }
};

template <class Qos> void set_qos(Qos &qos) {
    qos.reliability().kind = fast::RELIABLE_RELIABILITY_QOS;
    qos.reliability().max_blocking_time = eprosima::fastrtps::Duration_t(30, 0);
    qos.history().kind = fast::KEEP_ALL_HISTORY_QOS;
    qos.resource_limits().max_instances = 1;
    qos.resource_limits().max_samples = 100000;
    qos.resource_limits().max_samples_per_instance = 100000;
    qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
}

std::unique_ptr<Echo> make_echo(fast::DomainParticipant *participant, fast::Publisher *publisher, fast::Subscriber *subscriber,
                                fast::TopicDataType *raw, const std::string &name, const std::string &type_name) {
    auto echo = std::make_unique<Echo>();
    raw->setName(type_name.c_str());
    echo->type = fast::TypeSupport(raw);
    if (echo->type.register_type(participant) != ReturnCode_t::RETCODE_OK) return nullptr;
    fast::Topic *in = participant->create_topic("rt/to_peer/" + name, type_name, fast::TOPIC_QOS_DEFAULT);
    fast::Topic *out = participant->create_topic("rt/from_peer/" + name, type_name, fast::TOPIC_QOS_DEFAULT);
    if (!in || !out) return nullptr;
    // Shared memory of a process that is killed would stay for ever.
    fast::DataWriterQos writer_qos = fast::DATAWRITER_QOS_DEFAULT;
    writer_qos.data_sharing().off();
    set_qos(writer_qos);
    writer_qos.reliable_writer_qos().times.heartbeatPeriod = eprosima::fastrtps::Duration_t(0, 100000000);
    fast::DataReaderQos reader_qos = fast::DATAREADER_QOS_DEFAULT;
    reader_qos.data_sharing().off();
    set_qos(reader_qos);
    echo->data = echo->type.create_data();
    echo->writer = publisher->create_datawriter(out, writer_qos);
    echo->reader = subscriber->create_datareader(in, reader_qos, echo.get(), fast::StatusMask::data_available());
    return echo->writer && echo->reader ? std::move(echo) : nullptr;
}

// The layout of before Iron has the name of today's type, and a participant of Fast DDS knows each name once: so it gets a participant of its own.
struct Side {
    fast::DomainParticipant *participant;
    fast::Publisher *publisher;
    fast::Subscriber *subscriber;
};

}  // namespace

int main(int n, char **arguments) {
    if (n != 2) return 2;
    const auto domain = static_cast<uint32_t>(std::strtoul(arguments[1], nullptr, 10));
    Side sides[2];
    for (auto &side : sides) {
        side.participant = join_on_loopback(domain);
        if (!side.participant) return 1;
        side.publisher = side.participant->create_publisher(fast::PUBLISHER_QOS_DEFAULT);
        side.subscriber = side.participant->create_subscriber(fast::SUBSCRIBER_QOS_DEFAULT);
    }
    std::vector<std::unique_ptr<Echo>> echoes;
    bool is_good = true;
    const auto add = [&](fast::TopicDataType *type, std::string package, const std::string &kind, std::string name) {
        name.pop_back();  // the _ at the end
        const std::string topic = package + "_" + name;
        const std::string humble = "_humble";
        const bool is_humble = package.size() > humble.size() && package.compare(package.size() - humble.size(), humble.size(), humble) == 0;
        if (is_humble) package.resize(package.size() - humble.size());
        const Side &side = sides[is_humble];
        auto echo = make_echo(side.participant, side.publisher, side.subscriber, type, topic, package + "::" + kind + "::dds_::" + name + "_");
        is_good = is_good && echo;
        if (echo) echoes.push_back(std::move(echo));
    };
#define MESSAGE(package, kind, name) add(new package::kind::dds_::name##PubSubType(), #package, #kind, #name);
#include "peer_list.h"
#undef MESSAGE
    if (!is_good) return 1;

    std::thread worker([&] {
        std::unique_lock<std::mutex> guard(wake_lock);
        for (;;) {
            wake.wait(guard, [] { return is_awake; });
            is_awake = false;
            guard.unlock();
            for (auto &echo : echoes) echo->run();
            guard.lock();
        }
    });
    std::printf("ready %zu\n", echoes.size());
    std::fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    // It leaves as programs do that are stopped: without a word.
    std::fflush(stderr);
    _exit(0);
}
