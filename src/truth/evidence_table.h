/* evidence_table: data/evidence, as scripts/embed.c writes it when the library is built. Private to
 * src/truth. */
#pragma once
#include "scalemodel/evidence.h"

extern const sm_evidence sm_evidence_table[];
extern const size_t sm_evidence_table_count;
extern const sm_evidence_apart sm_evidence_apart_table[2][2]; /* by use; known, hidden software */
