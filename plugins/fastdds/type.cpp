// Samples as opaque bytes in Fast DDS.
#include <fastdds/rtps/common/SerializedPayload.h>
#include <fastrtps/utils/md5.h>

#include <algorithm>
#include <cstring>

#include "fastdds.h"

namespace understudy {

// The first guess for the memory of a sample; it grows with what comes.
static constexpr uint32_t first_size = 256;
static constexpr size_t hash_size = 16;  // bytes of a key hash

static uint32_t padded(size_t length) { return static_cast<uint32_t>((length + 3) / 4 * 4); }

rtps::InstanceHandle_t unknown_instance() {
    rtps::InstanceHandle_t handle;
    for (size_t i = 0; i < hash_size; i++) handle.value[i] = 0xff;
    return handle;
}

ByteType::ByteType(const usi_vendor_endpoint_def &def) {
    setName(def.type);
    m_typeSize = first_size;
    m_isGetKeyDefined = def.key || def.is_keyed;
    set_key(def);
    // Nothing is announced of the type but its name: every peer matches by that.
    auto_fill_type_object(false);
    auto_fill_type_information(false);
}

void ByteType::set_key(const usi_vendor_endpoint_def &def) {
    key_type = def.key_type;
    key = def.key;
    key_bound = def.key_bound;
}

bool ByteType::serialize(void *data, rtps::SerializedPayload_t *payload) {
    const auto *from = static_cast<const Carried *>(data);
    const uint32_t length = padded(from->length);
    if (length < 4 || payload->max_size < length) return false;
    std::memcpy(payload->data, from->bytes, from->length);
    std::memset(payload->data + from->length, 0, length - from->length);
    payload->length = length;
    payload->encapsulation = payload->data[1];  // 1 little, 0 big endian
    return true;
}

bool ByteType::deserialize(rtps::SerializedPayload_t *payload, void *data) {
    auto *to = static_cast<Carried *>(data);
    to->own.assign(payload->data, payload->data + payload->length);
    to->bytes = to->own.data();
    to->length = to->own.size();
    return true;
}

std::function<uint32_t()> ByteType::getSerializedSizeProvider(void *data) {
    const uint32_t length = padded(static_cast<const Carried *>(data)->length);
    return [length]() { return length; };
}

void *ByteType::createData() { return new Carried(); }

void ByteType::deleteData(void *data) { delete static_cast<Carried *>(data); }

// The hash of the key as it was said; or by the key itself, as the RTPS specification hashes it: its CDR in big endian, or the MD5 of that where it can be
// longer than 16 bytes; or that of all whose key is not known.
bool ByteType::getKey(void *data, rtps::InstanceHandle_t *handle, bool force_md5) {
    const auto *from = static_cast<const Carried *>(data);
    if (!m_isGetKeyDefined) return false;
    *handle = unknown_instance();
    if (from->has_hash) {
        for (size_t i = 0; i < hash_size; i++) handle->value[i] = from->hash[i];
        return true;
    }
    usi_key_function *read = key;
    if (!read) return true;
    if (!from->bytes) return false;
    const size_t n = read(key_type, from->bytes, from->length, from->is_key_alone, false, nullptr, 0);
    if (n == SIZE_MAX) return false;
    Bytes bytes(std::max(n, hash_size));
    read(key_type, from->bytes, from->length, from->is_key_alone, false, bytes.data(), n);
    if (force_md5 || key_bound > hash_size) {
        MD5 md5;
        md5.init();
        md5.update(bytes.data(), static_cast<unsigned int>(n));
        md5.finalize();
        std::memcpy(bytes.data(), md5.digest, hash_size);
    }
    for (size_t i = 0; i < hash_size; i++) handle->value[i] = bytes[i];
    return true;
}

}  // namespace understudy
