/* Is this program under a sanitizer, or built by clang as a second compiler? There everything runs
 * again that runs as users compile it, several times slower: sweeps leave out what differs in
 * numbers alone. gcc runs them whole. */
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#if SANITIZED || defined(__clang__)
#define REPEATED 1
#else
#define REPEATED 0
#endif
