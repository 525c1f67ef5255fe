// A world from a text or a file for tests of queries: a failed call fails the running cmocka test.
#ifndef TESTS_SUPPORT_QUERY_WORLD_H
#define TESTS_SUPPORT_QUERY_WORLD_H

#include "understudy/understudy.h"

typedef struct query_world {
    us_model *model;
    us_sim *sim;
} query_world;

query_world query_world_text(const char *scene);
query_world query_world_file(const char *name);  // from the source tree: "scenes/arm.xml"
void query_world_step(query_world *w, int n);
void query_world_free(query_world *w);
us_body query_body(const query_world *w, const char *name);
us_joint query_joint(const query_world *w, const char *name);
void query_near(const char *what, double got, double want, double tolerance);
void query_near_vec3(const char *what, us_vec3 got, us_vec3 want, double tolerance);

#endif
