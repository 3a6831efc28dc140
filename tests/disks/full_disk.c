/* While the file named by FULL_DISK exists, write() to a regular file fails with ENOSPC. Pipes, sockets and eventfds
 * are not affected.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t write(int descriptor, const void *data, size_t size)
{
    const char *full = getenv("FULL_DISK");
    struct stat found;

    if (full && access(full, F_OK) == 0 && fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_write, descriptor, data, size);
}
