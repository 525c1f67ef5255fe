// Clients of the page that misbehave, are slow or leave; and what the page costs the thread that steps.
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "page_rig.h"

// ---- misbehaviour ----

static void mistakes_are_told_and_too_many_close_their_sender_alone(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    ws_client *good = page_open(NULL), *bad = page_open(NULL);
    const char *wrong[] = {"{", "null", "{\"op\":\"dance\"}", "{\"op\":\"view\",\"hz\":-1}",
                           "{\"op\":\"watch\",\"generation\":1,\"values\":[1]}"};
    for (int i = 0; i < USI_PAGE_ERRORS; i++) {
        assert_true(ws_say(bad, wrong[i % 5]));
        cJSON *error = page_text(bad, "error");
        assert_true(strlen(page_text_of(error, "text")) > 0);
        cJSON_Delete(error);
    }
    assert_true(ws_send(bad, WS_BINARY, "\x01\x02", 2));
    double until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
    while (page_next(bad, until)) {
    }
    assert_true(bad->is_closed);
    assert_int_equal(bad->close_code, 1008);
    page_frame_of(good, USI_VIEW_POSES);
    assert_true(page_command(good, "pause", NULL, 0));
    page_leave(good);
    page_leave(bad);
    // It stands in the log.
    good = page_open(NULL);
    cJSON *log = page_text(good, "log");
    char *text = cJSON_PrintUnformatted(log);
    assert_non_null(strstr(text, "too many mistakes"));
    cJSON_free(text);
    cJSON_Delete(log);
    page_leave(good);
    page_stop();
}

static void a_foreign_page_is_refused_and_stands_in_the_log(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    ws_client foreign;
    int status = 0;
    const ws_def def = {.port = page.port, .origin = "http://elsewhere.example"};
    assert_false(ws_open(&foreign, &def, &status));
    assert_int_equal(status, 403);
    ws_client *good = page_open(NULL);
    cJSON *log = page_text(good, "log");
    char *text = cJSON_PrintUnformatted(log);
    assert_non_null(strstr(text, "elsewhere.example"));
    cJSON_free(text);
    cJSON_Delete(log);
    page_leave(good);
    page_stop();
}

static void broken_frames_and_huge_messages_close_their_sender_alone(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    ws_client *good = page_open(NULL);
    static char huge[USI_VIEW_MESSAGE + 100];
    memset(huge, ' ', sizeof huge);
    const struct {
        const void *bytes;
        size_t length;
    } broken[] = {
        {"\x83\x80\x01\x02\x03\x04", 6},                                   // an opcode that is none
        {"\xf1\x80\x01\x02\x03\x04", 6},                                   // reserved bits
        {"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x03\x04", 14},  // longer than anything
        {NULL, 0},                                                         // too long a message, well formed
    };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        ws_client *bad = page_open(NULL);
        page_frame_of(bad, USI_VIEW_POSES);
        if (broken[i].bytes) {
            ws_send_raw(bad, broken[i].bytes, broken[i].length);
        } else {
            ws_send(bad, WS_TEXT, huge, sizeof huge);
        }
        double until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
        while (page_next(bad, until)) {
        }
        if (!bad->is_closed) fail_msg("case %d: still open", (int)i);
        page_leave(bad);
        page_frame_of(good, USI_VIEW_POSES);
    }
    assert_true(page_command(good, "pause", NULL, 0));
    page_leave(good);
    page_stop();
}

static void a_client_that_floods_is_sent_away(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    ws_client *good = page_open(NULL), *bad = page_open(NULL);
    for (int i = 0; i < 5000 && ws_say(bad, "{\"op\":\"full\"}"); i++) {
    }
    double until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
    while (page_next(bad, until)) {
    }
    assert_true(bad->is_closed);
    page_frame_of(good, USI_VIEW_POSES);
    page_leave(good);
    page_leave(bad);
    page_stop();
}

// Many balls in free fall: every picture has all of them.
static char *crowd(int n) {
    size_t cap = (size_t)n * 160 + 400, at = 0;
    char *text = malloc(cap);
    assert_non_null(text);
    at += (size_t)snprintf(text, cap, "<scene name='crowd' version='1'><world step='1 ms'/>");
    for (int i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, cap - at,
                               "<object name='b%d' xyz='%d 0 1000'><link name='link' density='1000'><shape "
                               "type='sphere' size='0.1'/></link></object>",
                               i, i);
    }
    snprintf(text + at, cap - at, "</scene>");
    return text;
}

static void a_slow_client_gets_fewer_pictures_while_others_go_on(void **state) {
    (void)state;
    char *text = crowd(600);
    page_start(text, NULL, NULL, NULL);
    free(text);
    ws_client slow, *quick = page_open(NULL);
    const ws_def def = {.port = page.port, .receive_buffer = 4096};
    assert_true(ws_open(&slow, &def, NULL));
    page_say(&slow, "{\"op\":\"view\",\"hz\":60}");
    page_say(quick, "{\"op\":\"view\",\"hz\":60}");
    // The slow one does not read. 150 pictures of 19 kB are more than lies under way for it anywhere.
    int64_t last = -1;
    for (int i = 0; i < 150; i++) {
        page_frame f = page_frame_of(quick, USI_VIEW_POSES);
        assert_true(f.tick > last);
        last = f.tick;
    }
    // Now it reads: what it gets first is what was under way, then it is up to date, and it has missed most.
    int n = 0;
    page_frame f;
    do {
        f = page_frame_of(&slow, USI_VIEW_POSES);
        n++;
    } while (f.tick <= last);
    assert_true(n < 100);
    // It knows all of what it was sent: nothing that moved in between is missing in the new picture.
    assert_int_equal(f.n, 600);
    ws_end(&slow);
    page_leave(quick);
    page_stop();
}

static void an_answer_reaches_a_client_that_has_not_read_for_long(void **state) {
    (void)state;
    char *text = crowd(600);
    page_start(text, NULL, NULL, NULL);
    free(text);
    ws_client slow, *quick = page_open(NULL);
    const ws_def def = {.port = page.port, .receive_buffer = 4096};
    assert_true(ws_open(&slow, &def, NULL));
    page_say(&slow, "{\"op\":\"view\",\"hz\":60}");
    for (int i = 0; i < 60; i++)
        page_frame_of(quick, USI_VIEW_POSES);
    page_say(&slow, "{\"op\":\"command\",\"id\":4711,\"text\":\"pause\"}");
    double until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
    while (!us_world_get_pace_request(page.world).is_paused && usi_view_clock() < until)
        page_turn();
    cJSON *reply = page_text(&slow, "reply");
    assert_true(page_number(reply, "id") == 4711 && page_is_true(reply, "ok"));
    cJSON_Delete(reply);
    ws_end(&slow);
    page_leave(quick);
    page_stop();
}

// ---- what it costs ----

static void nobody_looks_and_no_picture_is_taken(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    const us_view *served = page.view;
    for (int i = 0; i < 100; i++)
        page_turn();
    assert_int_equal(served->taker.n_frame, 0);
    ws_client *c = page_open(NULL);
    page_frame_of(c, USI_VIEW_POSES);
    page_leave(c);
    double until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
    while (atomic_load(&served->rate) != 0 && usi_view_clock() < until)
        page_turn();
    uint64_t n = served->taker.n_frame;
    assert_true(n > 0);
    for (int i = 0; i < 100; i++)
        page_turn();
    assert_int_equal(served->taker.n_frame, n);
    page_stop();
}

// An allocator that counts what the stepping thread asks for.
static pthread_t stepping;
static _Atomic int64_t n_asked;

static void *counting_alloc(void *context, size_t size, size_t align) {
    (void)context;
    if (pthread_equal(pthread_self(), stepping)) atomic_fetch_add(&n_asked, 1);
    us_allocator a = us_allocator_default();
    return a.alloc(a.context, size, align);
}
static void counting_release(void *context, void *memory, size_t size, size_t align) {
    (void)context;
    us_allocator a = us_allocator_default();
    a.release(a.context, memory, size, align);
}

static void pictures_need_no_memory_once_they_have_it(void **state) {
    (void)state;
    stepping = pthread_self();
    const us_allocator allocator = {counting_alloc, counting_release, NULL};
    page_start(NULL, US_SOURCE_DIR "/scenes/default.xml", NULL, &allocator);
    ws_client *c = page_open(NULL);
    page_say(c, "{\"op\":\"view\",\"hz\":60,\"contacts\":true,\"torques\":true,\"topics\":true}");
    page_say(c, "{\"op\":\"watch\",\"generation\":1,\"values\":[\"k10/base_link.x\",\"energy\",\"time\"]}");
    page_frame_of(c, USI_VIEW_VALUES);
    assert_true(page_command(c, "pause", NULL, 0));
    // While time stands still the number of contacts does too; each of the three pictures has had its turn
    // after a few.
    const us_view *served = page.view;
    double until = usi_view_clock() + PAGE_PATIENCE / 1000.0;
    uint64_t first = served->taker.n_frame;
    while (served->taker.n_frame < first + 8 && usi_view_clock() < until)
        (void)(ws_next(c, 1) || (page_turn(), true));
    int64_t before = atomic_load(&n_asked);
    while (served->taker.n_frame < first + 30 && usi_view_clock() < until)
        (void)(ws_next(c, 1) || (page_turn(), true));
    assert_true(served->taker.n_frame >= first + 30);
    assert_int_equal(atomic_load(&n_asked), before);
    page_leave(c);
    page_stop();
}

// An allocator that fails once.
static _Atomic int64_t n_live, until_failure;

static void *failing_alloc(void *context, size_t size, size_t align) {
    (void)context;
    if (atomic_fetch_sub(&until_failure, 1) == 1) return NULL;
    us_allocator a = us_allocator_default();
    void *memory = a.alloc(a.context, size, align);
    if (memory) atomic_fetch_add(&n_live, 1);
    return memory;
}
static void failing_release(void *context, void *memory, size_t size, size_t align) {
    (void)context;
    atomic_fetch_sub(&n_live, 1);
    us_allocator a = us_allocator_default();
    a.release(a.context, memory, size, align);
}

static void a_page_without_memory_is_refused_and_leaves_nothing_behind(void **state) {
    (void)state;
    us_error err = {0};
    us_spec *spec = NULL;
    page_check(us_spec_load_text(page_scene, strlen(page_scene), "small.xml", NULL, &spec, &err), &err);
    us_world_def def = us_world_def_default();
    def.allocator = (us_allocator){failing_alloc, failing_release, NULL};
    us_world *world = NULL;
    page_check(us_world_create(spec, &def, &world, &err), &err);
    us_spec_destroy(spec);
    us_view_def page_def = us_view_def_default();
    page_def.port = 0;
    int64_t before = atomic_load(&n_live);
    us_view *view = NULL;
    us_status status = US_ERR_MEMORY;
    int n_failed = 0;
    for (; status && n_failed < 1000; n_failed++) {
        atomic_store(&until_failure, n_failed + 1);
        status = us_view_create(world, &page_def, &view, &err);
        atomic_store(&until_failure, 0);
        if (!status) break;
        assert_int_equal(status, US_ERR_MEMORY);
        assert_null(view);
        assert_int_equal(atomic_load(&n_live), before);
    }
    assert_int_equal(status, US_OK);
    assert_true(n_failed > 5);
    us_view_destroy(view);
    us_world_destroy(world);
}

static void a_host_ends_with_clients_connected(void **state) {
    (void)state;
    page_start(page_scene, NULL, NULL, NULL);
    ws_client *c[5];
    for (int i = 0; i < 5; i++) {
        c[i] = page_open(NULL);
        page_say(c[i], "{\"op\":\"watch\",\"generation\":1,\"values\":[\"time\",\"energy\"]}");
        page_frame_of(c[i], USI_VIEW_VALUES);
        page_say(c[i], "{\"op\":\"command\",\"id\":1,\"text\":\"pause\"}");
    }
    page_stop();
    for (int i = 0; i < 5; i++)
        page_leave(c[i]);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_told_and_too_many_close_their_sender_alone),
        cmocka_unit_test(a_foreign_page_is_refused_and_stands_in_the_log),
        cmocka_unit_test(broken_frames_and_huge_messages_close_their_sender_alone),
        cmocka_unit_test(a_client_that_floods_is_sent_away),
        cmocka_unit_test(a_slow_client_gets_fewer_pictures_while_others_go_on),
        cmocka_unit_test(an_answer_reaches_a_client_that_has_not_read_for_long),
        cmocka_unit_test(nobody_looks_and_no_picture_is_taken),
        cmocka_unit_test(pictures_need_no_memory_once_they_have_it),
        cmocka_unit_test(a_page_without_memory_is_refused_and_leaves_nothing_behind),
        cmocka_unit_test(a_host_ends_with_clients_connected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
