/* kge/safetensors_internal.h - both tables in one file (kge/safetensors.c); for kge/ alone. */
#ifndef KGE_SAFETENSORS_INTERNAL_H
#define KGE_SAFETENSORS_INTERNAL_H

#include "kge/table_internal.h"

/* The names of a file's rows: row k is that of id order[k]. */
struct kge_safetensors_names {
	uint32_t *order;
	size_t n;
};

/* ERR_USAGE: PyKEEN has another formula for this model; ERR_EXISTS: README.md or config.json is
 * there and not of such an export. */
MUST_CHECK int kge_safetensors_may_write(const struct kge_emb *m, const char *folder, bool pykeen,
					 struct err *e);
/* model.safetensors, config.json and README.md; pykeen: by PyKEEN's conventions. */
MUST_CHECK int kge_safetensors_write(const struct kge_emb *m, const char *folder, bool pykeen,
				     const struct kge_told *told, struct err *e);
/* All rows into m; on an error some may be changed. */
MUST_CHECK int kge_safetensors_read(struct kge_emb *m, const char *folder,
				    struct kge_safetensors_names names[2], struct err *e);

#endif
