/* audit/leaks.h - hosts that are wrong on purpose: the positive controls of audit A.
 *
 * Each is a host as it ships whose messages are spoiled on their way out; the shipped code
 * has no switch for any of this. */
#ifndef AUDIT_LEAKS_H
#define AUDIT_LEAKS_H

#include "audit/interference.h"

/* The authors' released code (methods 3.2): the student is trained on real rows too.
 * PPAT with the student at the host. */
struct conv *audit_open_student_sees_rows(const struct audit_host *h, struct err *e);

/* Acknowledgements carry a figure computed from Y, which the client does not even read. */
struct conv *audit_open_ack_tells(const struct audit_host *h, struct err *e);

/* Acknowledgements of a length that depends on Y, and otherwise of zeros. */
struct conv *audit_open_length_tells(const struct audit_host *h, struct err *e);

#endif
