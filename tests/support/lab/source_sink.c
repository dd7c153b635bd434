/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source_sink SOCKET BYTES source|sink: the far end of a relay, never its bottleneck. Listens on the unix socket and
 * serves one connection after another until it gets SIGTERM:
 *
 *     source   sends BYTES and closes
 *     sink     takes what comes until the end of file or BYTES have come, and closes
 *
 * For each connection one line with the number of bytes that went through comes out on stdout.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { piece_bytes = 1 << 20 };

static char piece[piece_bytes];

static size_t next_piece(uint64_t left)
{
    return left < piece_bytes ? (size_t)left : piece_bytes;
}

static uint64_t send_all(int fd, uint64_t bytes)
{
    uint64_t done = 0;
    while (done < bytes) {
        ssize_t n = send(fd, piece, next_piece(bytes - done), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        done += (uint64_t)n;
    }
    return done;
}

static uint64_t take_all(int fd, uint64_t bytes)
{
    uint64_t done = 0;
    while (done < bytes) {
        ssize_t n = recv(fd, piece, next_piece(bytes - done), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (uint64_t)n;
    }
    return done;
}

static int listen_on(const char *path)
{
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address.sun_path) {
        fprintf(stderr, "source_sink: path too long: %s\n", path);
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || (unlink(path) < 0 && errno != ENOENT) || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(fd, 8) < 0) {
        fprintf(stderr, "source_sink: %s: %s\n", path, strerror(errno));
        return -1;
    }
    return fd;
}

int main(int argc, char **argv)
{
    char *end = NULL;
    uint64_t bytes = argc == 4 ? strtoull(argv[2], &end, 10) : 0;
    int is_source = argc == 4 && strcmp(argv[3], "source") == 0;
    if (argc != 4 || *end != '\0' || (!is_source && strcmp(argv[3], "sink") != 0)) {
        fputs("usage: source_sink SOCKET BYTES source|sink\n", stderr);
        return 64;
    }
    for (size_t i = 0; i < piece_bytes; i++)
        piece[i] = (char)(i * 2654435761u >> 13);

    int listener = listen_on(argv[1]);
    if (listener < 0)
        return 74;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) {
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            perror("source_sink: accept");
            return 71;
        }
        uint64_t done = is_source ? send_all(fd, bytes) : take_all(fd, bytes);
        close(fd);
        printf("%" PRIu64 "\n", done);
        fflush(stdout);
    }
}
