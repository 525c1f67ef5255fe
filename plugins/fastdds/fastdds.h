// The vendor Fast DDS inside: what its files share.
#ifndef UNDERSTUDY_FASTDDS_H
#define UNDERSTUDY_FASTDDS_H

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>

#include <array>
#include <atomic>
#include <map>
#include <sstream>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "bus/vendor.h"

namespace understudy {

namespace fast = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

using Id = std::array<uint8_t, 16>;
using Bytes = std::vector<uint8_t>;

Id to_id(const rtps::GUID_t &guid);
// Fills *err, which may be NULL: the library's own function is not at hand in a plug-in.
us_status set_error(us_error *err, us_status code, const std::string &message, const char *remedy);

// A sample as a type sees it: what a writer is given to send, and what a reader is filled with, which has its
// bytes in `own`.
struct Carried {
    const void *bytes = nullptr;
    size_t length = 0;
    bool is_key_alone = false;
    bool has_hash = false;  // of the key, from whoever wrote it
    std::array<uint8_t, 16> hash{};
    Bytes own;
};

// The instance of samples with keys that nobody knows.
rtps::InstanceHandle_t unknown_instance();

// A type of which the name is known, and how to find a key: bytes pass as they are.
class ByteType : public fast::TopicDataType {
  public:
    explicit ByteType(const usi_vendor_endpoint_def &def);
    // Another endpoint uses it: what knows the key lives as long as that.
    void set_key(const usi_vendor_endpoint_def &def);
    bool serialize(void *data, rtps::SerializedPayload_t *payload) override;
    bool deserialize(rtps::SerializedPayload_t *payload, void *data) override;
    std::function<uint32_t()> getSerializedSizeProvider(void *data) override;
    void *createData() override;
    void deleteData(void *data) override;
    bool getKey(void *data, rtps::InstanceHandle_t *handle, bool force_md5) override;

  private:
    std::atomic<usi_key_function *> key{nullptr};
    std::atomic<const us_message_type *> key_type{nullptr};
    size_t key_bound = 0;
};

struct Peer {
    std::string user_data, host;
    uint16_t vendor = 0;  // as the standard numbers them; 0: our own
};

// What discovery told, by id: own things are put in by hand, for Fast DDS does not announce a participant to
// itself.
class Network : public fast::DomainParticipantListener {
  public:
    void on_participant_discovery(fast::DomainParticipant *participant,
                                  rtps::ParticipantDiscoveryInfo &&info) override;
    void on_publisher_discovery(fast::DomainParticipant *participant,
                                rtps::WriterDiscoveryInfo &&info) override;
    void on_subscriber_discovery(fast::DomainParticipant *participant,
                                 rtps::ReaderDiscoveryInfo &&info) override;

    void add(const us_endpoint &endpoint);
    void remove(const Id &endpoint);
    void add(const Id &participant, const Peer &peer);
    // Of an endpoint; that of Fast DDS where nothing else is known.
    us_dialect dialect_of(const Id &endpoint);

    void list(usi_visit_endpoint *visit, void *context);
    void list(usi_visit_peer *visit, void *context);
    // Tells of all writers, and from now on of each that is found.
    void watch(usi_visit_endpoint *visit, void *context);

  private:
    std::mutex lock;
    std::map<Id, us_endpoint> endpoints;
    std::map<Id, Peer> peers;
    usi_visit_endpoint *on_writer = nullptr;
    void *writer_context = nullptr;
};

struct SharedTopic {
    fast::Topic *topic;
    int n_use;
};

}  // namespace understudy

struct usi_vendor_participant {
    understudy::Network network;
    eprosima::fastdds::dds::DomainParticipant *participant = nullptr;
    // By whom their endpoints meet: usi_meeting. Made when the first of them is needed.
    // By whom they meet, and the names of their partitions.
    std::map<std::pair<usi_meeting, std::string>, eprosima::fastdds::dds::Publisher *> publishers;
    std::map<std::pair<usi_meeting, std::string>, eprosima::fastdds::dds::Subscriber *> subscribers;
    bool is_secured = false;
    std::atomic<bool> has_deaf_reader{false};  // one that did not acknowledge in time
    std::atomic<int64_t> linger_until{0};      // ns, CLOCK_MONOTONIC; 0: no time was set
    std::mutex lock;                           // of the topics
    std::map<std::string, eprosima::fastdds::dds::TypeSupport> types;
    std::map<std::string, understudy::SharedTopic> topics;
};

struct usi_vendor_endpoint : public eprosima::fastdds::dds::DataReaderListener, public eprosima::fastdds::dds::DataWriterListener {
    usi_vendor_participant *owner = nullptr;
    understudy::Id id{};
    std::string topic;
    bool is_reliable = false, is_keyed = false, has_ends = false, meets_own = false;
    // Endpoints of the dialect of Cyclone that Fast DDS takes for matched, and that do not match.
    std::mutex stranger_lock;
    std::set<understudy::Id> strangers;
    eprosima::fastdds::dds::DataWriter *writer = nullptr;
    eprosima::fastdds::dds::DataReader *reader = nullptr;

    us_sample_function *on_sample = nullptr;
    void (*on_data)(void *context) = nullptr;
    void *context = nullptr;
    // Held while a callback runs. Once is_closed is set under it, no further one does.
    std::mutex callback_lock;
    bool is_closed = false;
    // Of what was taken from Fast DDS and not yet by the caller. Never held together with the other lock:
    // callbacks come with a lock of the reader held, and taking a sample asks for that same lock.
    std::mutex take_lock;
    bool has_waiting = false;
    understudy::Carried waiting;
    eprosima::fastdds::dds::SampleInfo waiting_info;

    bool is_stranger(const understudy::Id &other) const;
    int32_t n_stranger();
    void note_match(const eprosima::fastrtps::rtps::InstanceHandle_t &other, int32_t change);

    void on_data_available(eprosima::fastdds::dds::DataReader *from) override;
    void on_subscription_matched(eprosima::fastdds::dds::DataReader *from, const eprosima::fastdds::dds::SubscriptionMatchedStatus &status) override;
    void on_publication_matched(eprosima::fastdds::dds::DataWriter *from, const eprosima::fastdds::dds::PublicationMatchedStatus &status) override;
};

#endif
