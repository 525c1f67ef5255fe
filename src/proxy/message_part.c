// Parts of messages that several of them have.
#include <math.h>

#include "proxy/proxy__sample.h"

us_msg_pose usi_message_pose(us_pose X) {
    return (us_msg_pose){{X.p.x, X.p.y, X.p.z}, {X.q.x, X.q.y, X.q.z, X.q.w}};
}

us_msg_pose usi_message_planar_pose(const double x[3]) {
    return (us_msg_pose){{x[0], x[1], 0}, {0, 0, sin(0.5 * x[2]), cos(0.5 * x[2])}};
}

void usi_message_odometry_covariance(double *pose, double *twist) {
    static const double known = 1e-3, unknown = 1e6;
    for (int i = 0; i < 6; i++) {
        bool is_known = i < 2 || i == 5;
        pose[7 * i] = is_known ? known : unknown;
        twist[7 * i] = is_known ? known : unknown;
    }
}
