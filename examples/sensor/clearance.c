// A kind of sensor of one's own, as a plug-in: clearance.
//
// It looks along its -z axis and says how far the next thing is that is not its own link, up to its reach,
// with white noise and an offset that wanders: w_n = w_(n-1) + wander sqrt(dt) n.
//
//     <sensor type="clearance" name="belly" link="body" rate="50 Hz" reach="2 m" noise="2 mm" wander="1 mm"/>
#include <math.h>
#include <understudy/query.h>
#include <understudy/sensor.h>

// Members in the order of the header, so that C++ takes them too.
enum { REACH, NOISE, WANDER, N_PARAMETER };
static const us_sensor_parameter parameters[N_PARAMETER] = {
    {"reach", "m", 0.01, 100, 5, "How far it sees.", US_PARAMETER_NUMBER, false, NULL},
    {"noise", "m", 0, 1, 0, "Standard deviation of a reading.", US_PARAMETER_NUMBER, false, NULL},
    {"wander", "m", 0, 1, 0, "Standard deviation of its offset's random walk after a second.",
     US_PARAMETER_NUMBER, false, NULL},
};

enum { RANGE, SEEN, N_READING };
static const us_sensor_reading readings[N_READING] = {
    {"range", "m", false},
    {"seen", "1", true},
};

// The state: the offset.
enum { OFFSET, N_STATE };

static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    const double reach = view->parameter[REACH];
    const us_vec3 down = us_quat_rotate(view->X_WS.q, us_vec3_make(0, 0, -1));
    us_query_filter filter = us_query_filter_default();
    filter.except.i = view->body;
    us_sim_hit hit;
    if (us_sim_cast_ray(view->sim, view->X_WS.p, down, reach, &filter, &hit)) return false;
    const bool is_seen = hit.shape >= 0;
    state[OFFSET] += view->parameter[WANDER] * sqrt(view->interval) * us_sensor_normal(view, 0);
    truth[RANGE] = is_seen ? hit.distance : reach;
    truth[SEEN] = reading[SEEN] = is_seen;
    reading[RANGE] = truth[RANGE] + state[OFFSET] + view->parameter[NOISE] * us_sensor_normal(view, 1);
    return true;
}

static const us_sensor_kind kinds[] = {
    {US_SENSOR_ABI,
     (int32_t)sizeof(us_sensor_kind),
     "clearance",
     "how far the next thing is below its link",
     N_PARAMETER,
     N_READING,
     0,  // presets
     0,  // members of a message
     parameters,
     readings,
     NULL,
     N_STATE,
     false,  // it does not need the force on it
     false,  // it gives readings
     50,     // Hz
     "range",
     NULL,  // names, units and values
     NULL,
     NULL,
     NULL,
     sample,
     NULL},
};

// Every kind of this library. The program asks for them when the scene says <plugin file="clearance.so"/>. It
// is found by its name, which C++ would change.
#ifdef __cplusplus
extern "C"
#endif
    US_API const us_sensor_kind *
    us_plugin_sensor_kinds(int32_t *out_n);
US_API const us_sensor_kind *us_plugin_sensor_kinds(int32_t *out_n) {
    *out_n = (int32_t)(sizeof kinds / sizeof *kinds);
    return kinds;
}
