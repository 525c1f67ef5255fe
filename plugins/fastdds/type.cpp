// Samples as opaque bytes in Fast DDS.
#include <fastdds/rtps/common/SerializedPayload.h>

#include <cstring>

#include "fastdds.h"

namespace understudy {

// The first guess for the memory of a sample; it grows with what comes.
static constexpr uint32_t first_size = 256;

static uint32_t padded(size_t length) { return static_cast<uint32_t>((length + 3) / 4 * 4); }

ByteType::ByteType(const char *name) {
    setName(name);
    m_typeSize = first_size;
    m_isGetKeyDefined = false;
    // Nothing is announced of the type but its name: every peer matches by that.
    auto_fill_type_object(false);
    auto_fill_type_information(false);
}

bool ByteType::serialize(void *data, rtps::SerializedPayload_t *payload) {
    const auto *from = static_cast<const Outgoing *>(data);
    const uint32_t length = padded(from->length);
    if (length < 4 || payload->max_size < length) return false;
    std::memcpy(payload->data, from->bytes, from->length);
    std::memset(payload->data + from->length, 0, length - from->length);
    payload->length = length;
    payload->encapsulation = payload->data[1];  // 1 little, 0 big endian
    return true;
}

bool ByteType::deserialize(rtps::SerializedPayload_t *payload, void *data) {
    auto *to = static_cast<Bytes *>(data);
    to->assign(payload->data, payload->data + payload->length);
    return true;
}

std::function<uint32_t()> ByteType::getSerializedSizeProvider(void *data) {
    const uint32_t length = padded(static_cast<const Outgoing *>(data)->length);
    return [length]() { return length; };
}

void *ByteType::createData() { return new Bytes(); }

void ByteType::deleteData(void *data) { delete static_cast<Bytes *>(data); }

bool ByteType::getKey(void * /*data*/, rtps::InstanceHandle_t * /*handle*/, bool /*force_md5*/) { return false; }

}  // namespace understudy
