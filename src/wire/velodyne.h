// Packets of Velodyne's lidars as bytes: made without sockets, clocks or allocation. Little-endian.
//
//     data, 1206 bytes      12 blocks of: FF EE, azimuth (hundredths of a degree, clockwise), 32 times
//     distance
//                           (2 or 4 mm; 0: no return) and intensity (a byte); then the time (us past the
//                           hour), the mode of returns and the device
//     position, 512 bytes   198 bytes, the time (us past the hour), 4 bytes, a sentence $GPRMC of NMEA 0183
#ifndef USI_WIRE_VELODYNE_H
#define USI_WIRE_VELODYNE_H

#include <stddef.h>
#include <stdint.h>

enum {
    USI_VELODYNE_DATA = 1206,
    USI_VELODYNE_POSITION = 512,
    USI_VELODYNE_BLOCKS = 12,
    USI_VELODYNE_CHANNELS = 32,
    USI_VELODYNE_POSITION_PORT = 8308,
};
// The device, as its packets say.
enum { USI_VELODYNE_HDL_32E = 0x21, USI_VELODYNE_VLP_16 = 0x22, USI_VELODYNE_VLP_32C = 0x28 };
// Which returns the blocks have. Dual: of the two blocks of a firing the first has the last return.
enum { USI_VELODYNE_STRONGEST = 0x37, USI_VELODYNE_LAST = 0x38, USI_VELODYNE_DUAL = 0x39 };

// m of a unit of distance.
double usi_velodyne_unit(int32_t device);
// Writes the head of a block, without returns.
void usi_velodyne_block(uint8_t *packet, int32_t block, double azimuth);  // rad, counter-clockwise from x
// A return of a channel of it. What does not fit in 16 bits is none.
void usi_velodyne_return(uint8_t *packet, int32_t block, int32_t channel, int32_t device, double range,
                         double intensity);
// The end: when the first block fired, ns since 1970.
void usi_velodyne_finish(uint8_t *packet, int64_t time, int32_t mode, int32_t device);
// A position packet at a time, ns since 1970, by a receiver that has the time and no position.
void usi_velodyne_position(uint8_t *packet, int64_t time);

#endif
