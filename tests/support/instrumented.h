// Whether the compiler puts checks of addresses into the code (gcc and clang say so differently): then
// everything is ten to twenty times as slow.
#ifndef TEST_INSTRUMENTED_H
#define TEST_INSTRUMENTED_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_INSTRUMENTED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(IS_INSTRUMENTED)
#define IS_INSTRUMENTED 1
#endif
#if !defined(IS_INSTRUMENTED)
#define IS_INSTRUMENTED 0
#endif

#endif
