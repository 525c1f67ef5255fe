// All of the library, and an error's text on a stream for programs that have one.
#ifndef UNDERSTUDY_UNDERSTUDY_H
#define UNDERSTUDY_UNDERSTUDY_H

#include <stdio.h>

#include "understudy/action.h"
#include "understudy/base.h"
#include "understudy/bus.h"
#include "understudy/camera.h"
#include "understudy/camera_model.h"
#include "understudy/depth_scanner.h"
#include "understudy/dyn.h"
#include "understudy/gate.h"
#include "understudy/geom.h"
#include "understudy/ground_model.h"
#include "understudy/image.h"
#include "understudy/interaction.h"
#include "understudy/interface.h"
#include "understudy/keys.h"
#include "understudy/lidar.h"
#include "understudy/link.h"
#include "understudy/material.h"
#include "understudy/math.h"
#include "understudy/messages.h"
#include "understudy/model.h"
#include "understudy/network.h"
#include "understudy/pace.h"
#include "understudy/proxy.h"
#include "understudy/query.h"
#include "understudy/raster.h"
#include "understudy/record.h"
#include "understudy/rover.h"
#include "understudy/sensing.h"
#include "understudy/sensor.h"
#include "understudy/service.h"
#include "understudy/sim.h"
#include "understudy/sky.h"
#include "understudy/soil.h"
#include "understudy/soil_law.h"
#include "understudy/spec.h"
#include "understudy/split.h"
#include "understudy/switch.h"
#include "understudy/terrain.h"
#include "understudy/view.h"
#include "understudy/vision.h"
#include "understudy/wire.h"
#include "understudy/world.h"

#ifdef __cplusplus
extern "C" {
#endif

// An error or a warning as the program prints it (us_error_format), with a line end. The library itself never
// prints: this function belongs to the program that calls it. Returns the error's code, so that main may end
// with it.
static inline int us_error_print(FILE *out, const us_error *err) {
    char text[sizeof(us_error) + 64];
    us_error_format(err, text, sizeof text);
    fprintf(out, "%s\n", text);
    return err ? (int)err->code : 0;
}

#ifdef __cplusplus
}
#endif
#endif
