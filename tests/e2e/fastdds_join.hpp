// How the programs of the tests that are built on Fast DDS and nothing of ours join a domain: on the loopback alone.
#ifndef UNDERSTUDY_TEST_FASTDDS_JOIN_HPP
#define UNDERSTUDY_TEST_FASTDDS_JOIN_HPP

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

#include <cstdint>
#include <memory>

namespace fast = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

inline fast::DomainParticipant *join_on_loopback(uint32_t domain) {
    fast::DomainParticipantQos qos = fast::PARTICIPANT_QOS_DEFAULT;
    auto transport = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    transport->interfaceWhiteList.emplace_back("127.0.0.1");
    transport->maxInitialPeersRange = 16;
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(transport);
    rtps::Locator_t loopback;
    loopback.kind = LOCATOR_KIND_UDPv4;
    rtps::IPLocator::setIPv4(loopback, 127, 0, 0, 1);
    qos.wire_protocol().builtin.initialPeersList.push_back(loopback);
    qos.wire_protocol().builtin.metatrafficUnicastLocatorList.push_back(loopback);
    return fast::DomainParticipantFactory::get_instance()->create_participant(domain, qos);
}

#endif
