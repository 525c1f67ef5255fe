// CRC-32 as Ethernet, PNG and MCAP have it (polynomial 0x04c11db7 reflected, start and end inverted).
#ifndef USI_WIRE_CRC32_H
#define USI_WIRE_CRC32_H

#include <stddef.h>
#include <stdint.h>

// Chained: start with 0, pass the last result to go on. usi_crc32(0, "123456789", 9) is 0xcbf43926.
uint32_t usi_crc32(uint32_t crc, const void *bytes, size_t length);

#endif
