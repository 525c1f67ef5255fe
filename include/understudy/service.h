// Requests and replies on a bus, the way ROS 2 has them: a service "/k10/locomotor" of type
// understudy_msgs/srv/Locomotor is asked on rq/k10/locomotorRequest and answers on rr/k10/locomotorReply.
//
// Two dialects are in use, on topics and types of the same names. rmw_cyclonedds writes who asks and with
// which number before the message; rmw_fastrtps carries both beside it, which Cyclone DDS cannot. A service
// speaks the dialect of its bus's vendor, and the other one through a bus of the other vendor, which is
// opened when the first program is heard that asks in it; where that vendor is not installed, such programs
// find no service. Endpoints of the one dialect are not matched by clients of the other: whoever finds a
// service is answered. (With keys they match all the same: permissions are for the unnamed partition.)
//
// Discovery is of each side by itself. What a client asks before the service has found it is lost: ask again
// when no reply comes for a time.
//
// Messages cross this interface as CDR of the request's and the response's type (understudy/wire.h), in
// either dialect. All functions may be called from any thread, and none from a callback of a bus.
#ifndef UNDERSTUDY_SERVICE_H
#define UNDERSTUDY_SERVICE_H

#include "understudy/bus.h"

#ifdef __cplusplus
extern "C" {
#endif

US_API us_dialect us_bus_dialect(const us_bus *bus);  // of its vendor

// Who asks, and with which number.
typedef struct us_request_id {
    uint64_t client;
    int64_t number;
} us_request_id;

typedef struct us_service us_service;
typedef struct us_client us_client;

typedef struct us_service_def {
    const char *name;                // ROS name, absolute
    const us_message_type *request;  // "rcl_interfaces/srv/GetParameters_Request"
    const us_message_type *response;
    int32_t node;  // us_bus_add_node, or -1
} us_service_def;

US_API us_status us_bus_add_service(us_bus *bus, const us_service_def *def, us_service **out_service,
                                    us_error *err);
// A handler that is under way is waited for: hold no lock that it takes. NULL is allowed.
US_API void us_service_remove(us_service *service);
// The next waiting request into buf. *out_length 0: none waits (us_bus_wait waits for one). US_ERR_LIMIT: it
// does not fit, *out_length says what buf has to have, and it stays.
US_API us_status us_service_take(us_service *service, void *buf, size_t cap, size_t *out_length,
                                 us_request_id *out_id);
// Instead of taking them: from now on requests go to a handler, one at a time, on the bus's own thread, which
// all services of the bus share. It may reply later, and from any thread. US_ERR_ARG for a NULL.
typedef void us_request_function(void *context, us_service *service, us_request_id id, const void *bytes,
                                 size_t length);
US_API us_status us_service_serve(us_service *service, us_request_function *on_request, void *context);
// Answers a request, once; never waits for its reader. US_ERR_SYNTAX for bytes that are not of the response's
// type, US_ERR_LIMIT when it had to be dropped.
US_API us_status us_service_reply(us_service *service, us_request_id id, const void *bytes, size_t length);

typedef struct us_client_def {
    const char *name;
    const us_message_type *request, *response;
    int32_t node;
    us_dialect dialect;
} us_client_def;

// US_ERR_IO for a dialect whose vendor is not installed.
US_API us_status us_bus_add_client(us_bus *bus, const us_client_def *def, us_client **out_client,
                                   us_error *err);
US_API void us_client_remove(us_client *client);  // NULL is allowed
// Whether a service is there.
US_API bool us_client_is_ready(us_client *client);
// Asks; *out_number is that of the reply. US_ERR_SYNTAX for bytes that are not of the request's type.
US_API us_status us_client_ask(us_client *client, const void *bytes, size_t length, int64_t *out_number);
// The next waiting reply to this client, and the number of its request; as us_service_take.
US_API us_status us_client_take(us_client *client, void *buf, size_t cap, size_t *out_length,
                                int64_t *out_number);

#ifdef __cplusplus
}
#endif
#endif
