// Drives a square over a robot's ASCII link and prints where it is on the way:
//
//     square tcp:127.0.0.1:5010 2        or  udp:127.0.0.1:5010, serial:/tmp/robots/k10
//
// Its corners are places of the site's frame, whose origin is set down where the robot stands.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "understudy/link.h"

static int fail(const us_error *err) {
    char text[1200];
    us_error_format(err, text, sizeof text);
    fprintf(stderr, "square: %s\n", text);
    return 1;
}

// Telemetry: every fifth state of the rover, and what its inertial unit says.
static void on_message(void *context, const us_link_message *m) {
    int *n = (int *)context;
    if (m->kind == US_LINK_ROVER && (*n)++ % 5 == 0)
        printf("x %7.3f m   y %7.3f m   heading %6.3f rad   speed %5.3f m/s   left %6.3f   %s\n",
               m->number[0], m->number[1], m->number[2], m->number[3], m->number[6],
               us_rover_state_word(m->state));
    if (m->kind == US_LINK_IMU)
        printf("roll %.4f rad   pitch %.4f rad   force %.3f %.3f %.3f m/s^2\n", m->number[0], m->number[1],
               m->number[5], m->number[6], m->number[7]);
}

int main(int argc, char **argv) {
    const double side = argc > 2 ? atof(argv[2]) : 2, corners[4][2] = {{1, 0}, {1, 1}, {0, 1}, {0, 0}};
    if (argc < 2 || argc > 3 || !(side > 0 && side < 1000)) {
        fprintf(stderr,
                "usage: square tcp:ADDRESS:PORT|udp:ADDRESS:PORT|serial:PATH [SIDE in m, default 2]\n");
        return 2;
    }
    int n = 0;
    us_error err = US_ZERO;
    us_link_client_def def = us_link_client_def_default();
    def.on_message = on_message;
    def.context = &n;
    us_link_client *link = NULL;
    us_link_message state;
    if (us_link_client_open(argv[1], &def, &link, &err)) return fail(&err);

    us_status status = us_link_client_command(link, "RPOS0,0,0", 5, NULL, &err);
    for (int i = 0; i < 4 && !status; i++) {
        char command[80];
        snprintf(command, sizeof command, "RGTOS%.3f,%.3f,0.5,0.05,60", side * corners[i][0],
                 side * corners[i][1]);
        status = us_link_client_move(link, command, 90, &state, &err);
        if (!status) printf("corner %d: x %.3f m   y %.3f m\n", i + 1, state.number[0], state.number[1]);
    }
    if (!status) status = us_link_client_command(link, "IIMUIMU0", 5, NULL, &err);
    // The reading comes right behind its acknowledgement.
    bool has = true;
    while (!status && has && state.kind != US_LINK_IMU)
        status = us_link_client_poll(link, 5, &state, &has, &err);
    us_link_client_close(link);
    return status ? fail(&err) : 0;
}
