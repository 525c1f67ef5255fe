// Any bytes as a recording: open it, ask everything, walk and seek. Nothing may crash, leak, hang or read
// what it should not.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "understudy/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Touches all that was handed out, so that the sanitizer sees a wrong pointer or length.
static uint64_t touch(uint64_t hash, const void *bytes, size_t length) {
    return bytes ? us_hash_bytes(hash, bytes, length) : hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    us_recording *r = NULL;
    us_error err;
    if (us_recording_open_bytes(data, size, NULL, &r, &err)) return 0;
    us_recording_info info = us_recording_get_info(r);
    uint64_t hash = touch(0, info.library, strlen(info.library));
    for (int32_t i = 0; i < info.n_channel; i++) {
        us_channel_info c = us_recording_get_channel(r, i);
        hash = touch(touch(hash, c.topic, strlen(c.topic)), c.encoding, strlen(c.encoding));
        hash = touch(touch(hash, c.type, strlen(c.type)), c.schema, strlen(c.schema));
    }
    size_t length = 0;
    const void *attached = us_recording_find_attachment(r, "scene.xml", &length);
    hash = touch(hash, attached, length);
    const char *value = us_recording_find_metadata(r, "run", "seed");
    if (value) hash = touch(hash, value, strlen(value));
    for (int pass = 0; pass < 2; pass++) {
        us_recorded m;
        bool has = true;
        while (!us_recording_next(r, &m, &has, &err) && has)
            hash = touch(hash, m.bytes, m.length);
        us_recording_seek(r, info.first_time / 2 + info.last_time / 2);
    }
    us_recording_close(r);
    volatile uint64_t kept = hash;
    (void)kept;
    return 0;
}
