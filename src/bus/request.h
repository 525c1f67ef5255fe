// Services inside: those of a robot, whose requests and replies are stored and delayed on their way.
//
// They are carried with the request's id in front of the message, whatever the dialect: behind the header of
// 4 bytes the client (8 bytes) and the number (8 bytes), then the message. 16 bytes keep every alignment. It
// is what rmw_cyclonedds has on the network, and what a type says that begins with `guid` and `seq`.
#ifndef USI_BUS_REQUEST_H
#define USI_BUS_REQUEST_H

#include "bus/bus.h"
#include "understudy/service.h"

enum { USI_REQUEST_ID = 16 };

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

#endif
