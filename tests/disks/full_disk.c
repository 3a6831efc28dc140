/* While the file that FULL_DISK names exists, write() to a file fails as on a disk without space. Pipes, sockets
 * and eventfds are on no disk.
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
