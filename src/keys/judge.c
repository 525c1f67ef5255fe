// What the signed texts say about a moment and a domain. Vendors look at this too, each at other parts of it
// and in words of its own; here it is looked at once for all of them, before a vendor is asked.
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "keys/keys.h"

static bool is_named(const xmlNode *node, const char *name) {
    return node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, name) == 0;
}

static const xmlNode *child_of(const xmlNode *parent, const char *name) {
    const xmlNode *child = parent ? parent->children : NULL;
    while (child && !is_named(child, name))
        child = child->next;
    return child;
}

// The text inside an element, without blanks around it, into out.
static void text_of(const xmlNode *node, char *out, size_t cap) {
    out[0] = 0;
    const char *text = node && node->children && node->children->type == XML_TEXT_NODE
                           ? (const char *)node->children->content
                           : "";
    text += strspn(text, " \t\r\n");
    const size_t n = strcspn(text, "\t\r\n");
    snprintf(out, cap, "%.*s", (int)n, text);
}

static long number_of(const xmlNode *node, long fallback) {
    char text[32];
    text_of(node, text, sizeof text);
    return text[0] ? strtol(text, NULL, 10) : fallback;
}

// Whether <domains> below *rule lists the domain.
static bool has_domain(const xmlNode *rule, int32_t domain) {
    const xmlNode *domains = child_of(rule, "domains");
    for (const xmlNode *d = domains ? domains->children : NULL; d; d = d->next) {
        if (is_named(d, "id") && number_of(d, -1) == domain) return true;
        if (is_named(d, "id_range") && number_of(child_of(d, "min"), 0) <= domain &&
            domain <= number_of(child_of(d, "max"), domain))
            return true;
    }
    return false;
}

static us_status refuse_domain(us_error *err, const char *path, int32_t domain) {
    return us_error_set(
        err, US_ERR_VALUE, &(us_place){.file = path},
        "Use a domain that the keys are for (ROS_DOMAIN_ID), or make them anew: understudy keys "
        "add KEYSTORE ENCLAVE --domains LIST.",
        "the keys are not meant for domain %d", domain);
}

// "2026-11-18T00:00:00" with Z, +01:00 or nothing behind it, as seconds since 1970; 0 when it is no time.
static int64_t time_of(const xmlNode *node) {
    char text[64];
    struct tm t = {0};
    int hours = 0, minutes = 0, n = 0;
    text_of(node, text, sizeof text);
    if (sscanf(text, "%d-%d-%dT%d:%d:%d%n", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min,
               &t.tm_sec, &n) != 6)
        return 0;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    int64_t seconds = (int64_t)timegm(&t);
    if (sscanf(text + n, "%3d:%2d", &hours, &minutes) == 2)
        seconds -= (int64_t)hours * 3600 + (text[n] == '-' ? -60 : 60) * (int64_t)minutes;
    return seconds;
}

static us_status judge_validity(const xmlNode *grant, const char *path, int64_t now, us_error *err) {
    const xmlNode *validity = child_of(grant, "validity");
    const int64_t start = time_of(child_of(validity, "not_before"));
    const int64_t until = time_of(child_of(validity, "not_after"));
    if (start && now < start)
        return us_error_set(err, US_ERR_VALUE, &(us_place){.file = path},
                            "Set the clock of this machine, or wait.", "the permissions are not valid yet");
    if (until && now > until)
        return us_error_set(err, US_ERR_VALUE, &(us_place){.file = path}, USI_MAKE_ENCLAVE_ANEW,
                            "the permissions have expired");
    return US_OK;
}

// The grant of a subject; NULL when none names it.
static const xmlNode *find_grant(const xmlNode *root, const char *subject) {
    const xmlNode *permissions = child_of(root, "permissions");
    for (const xmlNode *g = permissions ? permissions->children : NULL; g; g = g->next) {
        char name[256];
        if (!is_named(g, "grant")) continue;
        text_of(child_of(g, "subject_name"), name, sizeof name);
        if (strcmp(name, subject) == 0) return g;
    }
    return NULL;
}

static us_status judge_grant(const xmlNode *root, const char *path, const usi_claim *claim, us_error *err) {
    const xmlNode *grant = find_grant(root, claim->subject);
    // Names in another order or spelling are left to the vendor.
    if (!grant) return US_OK;
    us_status status = judge_validity(grant, path, claim->now, err);
    if (status || claim->domain < 0) return status;
    for (const xmlNode *rule = grant->children; rule; rule = rule->next) {
        if (is_named(rule, "allow_rule") && has_domain(rule, claim->domain)) return US_OK;
        if (is_named(rule, "deny_rule") && has_domain(rule, claim->domain)) return US_OK;
        if (is_named(rule, "default")) {
            char text[16];
            text_of(rule, text, sizeof text);
            if (strcmp(text, "ALLOW") == 0) return US_OK;
        }
    }
    return refuse_domain(err, path, claim->domain);
}

static us_status judge_governance(const xmlNode *root, const char *path, const usi_claim *claim,
                                  us_error *err) {
    const xmlNode *rules = child_of(root, "domain_access_rules");
    if (claim->domain < 0) return US_OK;
    for (const xmlNode *rule = rules ? rules->children : NULL; rule; rule = rule->next) {
        if (is_named(rule, "domain_rule") && has_domain(rule, claim->domain)) return US_OK;
    }
    return refuse_domain(err, path, claim->domain);
}

us_status usi_document_judge(const char *text, size_t length, const char *path, const usi_claim *claim,
                             us_error *err) {
    xmlDoc *document = xmlReadMemory(text, (int)length, NULL, NULL,
                                     XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    const xmlNode *root = document ? xmlDocGetRootElement(document) : NULL;
    us_status status = US_OK;
    if (!root) {
        status = us_error_set(err, US_ERR_VALUE, &(us_place){.file = path}, USI_MAKE_ENCLAVE_ANEW,
                              "what is signed is no XML");
    } else if (child_of(root, "domain_access_rules")) {
        status = judge_governance(root, path, claim, err);
    } else {
        status = judge_grant(root, path, claim, err);
    }
    xmlFreeDoc(document);
    return status;
}
