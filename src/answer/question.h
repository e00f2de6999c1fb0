/* question: what all answers begin with. */
#ifndef SM_ANSWER_QUESTION_H
#define SM_ANSWER_QUESTION_H
#include "scalemodel/answer.h"

/* Copy a caller's question into one of ours of `room` bytes, whose first member is its size: what
 * an older caller does not know of is 0, the default. SM_USAGE when it has no size or a newer one.
 */
sm_status sm_question_take(void *own, size_t room, const void *question, sm_error *err);
#endif
