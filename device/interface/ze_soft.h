/* What a tool asks the software device of urscope, and what the device tells it. src/lib.rs is the same in Rust.
 *
 * The device exports one symbol, zeSoftInterface, under each name that it is loaded by (libze_loader.so.1 and
 * libcuda.so.1). A tool finds it with dlsym, and first reads `size` and `version`. It can use the device if the version
 * is ZE_SOFT_INTERFACE_VERSION, and the size at least sizeof(ze_soft_interface_t): a newer device may have more members
 * at the end. Any other change is another version.
 *
 * The functions can be called at any time, from any thread. */
#ifndef ZE_SOFT_H
#define ZE_SOFT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ZE_SOFT_INTERFACE_VERSION 1

/* A finished access of a command to memory that processes share: rows of bytes in one file of the device. */
typedef struct ze_soft_access_t {
  uint64_t call;   /* what current_call returned when the command was appended; 0 if no tool was registered then */
  uint64_t begin;  /* when the command could begin, in nanoseconds of CLOCK_MONOTONIC: all that it waits for had
                      happened, but for copies and fills in front of it in its queue */
  uint64_t end;    /* when it had ended, in the same unit; nothing that it signals has been signalled */
  uint64_t memory; /* the inode of the file, by which all processes know the memory */
  uint64_t offset; /* the first byte in the file */
  uint64_t length; /* bytes of a row */
  uint64_t pitch;  /* bytes from one row to the next, more than a row has unless there is one row only */
  uint64_t rows;   /* the number of rows */
  uint64_t access; /* a ze_soft_access_kind_t */
} ze_soft_access_t;

typedef enum ze_soft_access_kind_t {
  ZE_SOFT_ACCESS_READ = 0,
  ZE_SOFT_ACCESS_WRITE = 1,
  ZE_SOFT_ACCESS_MAY_READ = 2, /* of a kernel: it may have read any of the bytes */
  ZE_SOFT_ACCESS_MAY_WRITE = 3 /* of a kernel: it may also have written any of them */
} ze_soft_access_kind_t;

/* The number of the tool's call that this thread is in; 0 for none. */
typedef uint64_t (*ze_soft_current_call_t)(void);

/* Takes an access. The thread of the device that has executed the command calls it. */
typedef void (*ze_soft_executed_t)(const ze_soft_access_t *access);

typedef struct ze_soft_interface_t {
  uint32_t size; /* of this structure in the device, in bytes */
  uint32_t version;

  /* The distance in bytes from `address` to the first byte that an unfinished copy, fill, query or kernel of this
   * process accesses. SIZE_MAX if there is none, or if this cannot be determined now. For a kernel, these are the bytes
   * that its pointer arguments name: a device does not know which others it accesses. */
  size_t (*unfinished_from)(const void *address);

  /* Registers two functions of a tool, in place of those before. A copy, a fill or a kernel asks the first one when it
   * is appended, in the calling thread. When the command has been executed, its thread calls the second one for each
   * access of it to memory that processes share, before anything is signalled. */
  void (*observe_commands)(ze_soft_current_call_t current_call, ze_soft_executed_t executed);
} ze_soft_interface_t;

extern const ze_soft_interface_t zeSoftInterface;

#ifdef __cplusplus
}
#endif

#endif
