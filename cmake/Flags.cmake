# Compiler flags, gathered in one interface target that everything links.
#
# Never -ffast-math: results must be the same bits for the same build. Fused multiply-add is allowed (-ffp-contract=fast):
# it is chosen at compile time, so it does not vary between runs.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(us_arch_default "x86-64-v3")
else()
  set(us_arch_default "")
endif()
set(US_ARCH "${us_arch_default}" CACHE STRING "Value for -march=; empty: the compiler's default")
option(US_WERROR "Warnings are errors: for those who change the code, not for those who build it" OFF)
set(US_SANITIZE "" CACHE STRING "Sanitizers, for example address,undefined; empty: none")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
  set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
else()
  # Pairing scalars of unrelated expressions into vectors costs more in shuffles than it saves in this code.
  set(CMAKE_C_FLAGS_RELEASE "-O3 -fno-tree-slp-vectorize -DNDEBUG")
endif()
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g -fno-omit-frame-pointer -DNDEBUG")

# Another version of a compiler may warn of what this code was never checked for: that must not stop a user's build.
if(US_WERROR)
  set(us_werror -Werror)
else()
  set(us_werror)
endif()

add_library(us_flags INTERFACE)
target_compile_definitions(us_flags INTERFACE _GNU_SOURCE)
target_compile_options(us_flags INTERFACE
  -Wall -Wextra -Wpedantic ${us_werror} -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wwrite-strings -Wvla
  -ffp-contract=fast -fno-math-errno
  -Wno-psabi) # four-lane vectors stay inside the library, so it does not matter how they would be passed without AVX

# For the library and the program also conversions that may lose something.
add_library(us_strict INTERFACE)
target_compile_options(us_strict INTERFACE -Wconversion -Wno-sign-conversion)
if(US_ARCH)
  target_compile_options(us_flags INTERFACE -march=${US_ARCH})
endif()
if(US_SANITIZE)
  set(us_sanitize_flags -fsanitize=${US_SANITIZE} -fno-sanitize-recover=all)
  # Lines are enough to find a place in a report, and build much faster than all about every variable.
  target_compile_options(us_flags INTERFACE ${us_sanitize_flags} -g1)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # Instrumented code misleads gcc's warnings; its plain build has the last word on them.
    target_compile_options(us_flags INTERFACE -Wno-error)
  endif()
  target_link_options(us_flags INTERFACE ${us_sanitize_flags})
endif()
