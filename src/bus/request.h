// Services inside: those of a robot, whose requests and replies are stored and delayed on their way.
//
// They are carried with the request's id in front of the message, whatever the dialect: behind the header of
// 4 bytes the client (8 bytes) and the number (8 bytes), then the message. 16 bytes keep every alignment. It
// is what rmw_cyclonedds has on the network, and what a type says that begins with `guid` and `seq`.
#ifndef USI_BUS_REQUEST_H
#define USI_BUS_REQUEST_H

#include "bus/bus.h"
#include "understudy/service.h"

enum { USI_REQUEST_ID = 16, USI_SERVICE_DEPTH = 1000 };

// As us_bus_add_service, for types that begin with guid and seq; requests go to the callback as they come.
us_status usi_bus_add_carried_service(us_bus *bus, const us_service_def *def, us_sample_function *on_request,
                                      void *context, us_service **out_service, us_error *err);
// A writer for replies that are carried, of usi_writer_send alone. It belongs to the service.
us_writer *usi_service_writer(us_service *service);
// From now on no request comes in; replies still go out. NULL is allowed.
void usi_service_deafen(us_service *service);
us_status usi_service_send(us_service *service, const void *bytes, size_t length);

// The request's id in front of a message, in the message's byte order; and behind the id the message.
us_request_id usi_request_id_get(const void *carried);
void usi_request_id_put(void *carried, us_request_id id);
// Takes the id out of a message that has one; false when it is too short. And the message with one, in memory
// of the bus (length + USI_REQUEST_ID bytes aligned to 8); NULL when there is none.
bool usi_request_id_take(void *buf, size_t *length, us_request_id *out_id);
uint8_t *usi_request_id_add(us_bus *bus, const void *bytes, size_t length, us_request_id id);

// The bus that speaks a dialect: this one, or its twin, which is opened if need be. US_ERR_IO where the
// vendor of the dialect is not installed.
us_status usi_bus_of_dialect(us_bus *bus, us_dialect dialect, us_bus **out_bus, us_error *err);

// What services and clients share: names of their topics, and how their endpoints are announced on a bus, in
// its dialect. `key` is "serviceid" or "clientid".
us_status usi_service_topics(const char *name, char request[USI_NAME_LENGTH], char reply[USI_NAME_LENGTH],
                             us_error *err);
usi_endpoint_more usi_service_ends(us_bus *bus, const char *key, char user_data[USI_NAME_LENGTH]);

#endif
