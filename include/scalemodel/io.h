/* io: files and JSON: Hugging Face configs, --system files, measured
 * rows. */
#pragma once
#include "scalemodel/recipe.h"
#include "scalemodel/simulate.h"
#include "scalemodel/trace.h"
#include "scalemodel/truth.h"

SM_DECLARATIONS_BEGIN

/* Bytes of a file that a person writes: a config, chips, constants, a plan; and of data. What is
 * larger is not read to its end. */
enum { SM_IO_TEXT_BYTES = 16 << 20, SM_IO_DATA_BYTES = 1 << 30 };
/* Read a whole file (regular file or pipe, of at most SM_IO_TEXT_BYTES) into the arena; text is
 * 0-terminated too. SM_IO with the path and the reason on failure. */
sm_status sm_io_read(const char *path, sm_arena *arena, sm_source *source, sm_error *err);
/* The same of at most so many bytes. */
sm_status sm_io_read_most(const char *path, size_t most, sm_arena *arena, sm_source *source,
                          sm_error *err);
/* The same of a file that gzip, zstd or xz may have packed, or of standard input ("-"): `most`
 * bounds the bytes unpacked. SM_BAD_INPUT when they are damaged, become too many, or were packed
 * otherwise. */
sm_status sm_io_read_packed(const char *path, size_t most, sm_arena *arena, sm_source *source,
                            sm_error *err);
/* What `profile` is asked about. */
typedef struct sm_profiled {
    sm_source module; /* a compiled module, not parsed yet; length 0: none was given */
    bool cut;         /* of its text only the part before a cut: the last computation ends there */
    const sm_trace *trace; /* of all traces together; NULL: none was given */
} sm_profiled;
/* Read n files, folders of such (of ranks, of hosts) or standard input ("-"): traces of Kineto,
 * JAX, XPlane, Perfetto and Nsight Systems, and at most one module; plain, .gz or .zst. partial:
 * of what is cut short the part before is read, and marked in sm_trace_file. SM_IO, or SM_BAD_INPUT
 * with the byte where a file is damaged, or what it is instead of a trace. */
sm_status sm_io_read_profiled(const char *const *path, int n, bool partial, sm_arena *arena,
                              sm_profiled *out, sm_error *err);
/* The same of one file in memory, packed or not. Errors as sm_io_read_profiled. */
sm_status sm_io_profiled_of(const sm_source *source, bool partial, sm_arena *arena,
                            sm_profiled *out, sm_error *err);
/* Write atomically: to a file without a name, where the system has such, which then takes the place
 * of what was there. A symbolic link is kept and its target written; a file of several names, a
 * device or a pipe is written in place. A failure leaves what was there. SM_IO with the path and
 * the reason. */
sm_status sm_io_write(const char *path, const char *text, size_t length, sm_error *err);
/* Could sm_io_write begin? A new file is made beside path and removed. What is neither a file nor a
 * folder is not opened, since a pipe's other end would notice. SM_IO with the path and the reason
 * when it could not. */
sm_status sm_io_write_check(const char *path, sm_error *err);

/* Be the only one that writes to a place: a file, or a folder, which ends in '/' or is one and is
 * made where it is not there. PLACE.lock, or FOLDER/lock, says who it is. SM_IO names him when
 * another is (wait: once he has done instead), or when there can be no lock. */
typedef struct sm_file_lock sm_file_lock;
sm_status sm_io_lock(const char *place, bool wait, sm_file_lock **out, sm_error *err);
/* Leave it to others. NULL is fine. */
void sm_io_unlock(sm_file_lock *lock);

/* The settings of a recipe in any of its forms (recipe.h), YAML too. Errors as sm_settings_read. */
sm_status sm_io_settings(const sm_source *source, sm_arena *arena, sm_settings *out, sm_error *err);

/* The config of a model by its catalogue name, from a path (contains '/' or ends in .json), a
 * folder that holds config.json, or standard input ("-"), as text that lives in the arena or as
 * long as the program. What is no path may be the id of a model on a hub
 * ("meta-llama/Llama-3.1-8B-Instruct") whose architecture the catalogue has. SM_BAD_INPUT when the
 * name is unknown (and names the nearest), SM_IO when it cannot be read. */
sm_status sm_io_model_source(const char *name_or_path, sm_arena *arena, sm_source *source,
                             sm_error *err);
/* The texts and families that are shipped and, over them, those of n files of a user, which win by
 * name: read and checked (notation.h). SM_BAD_INPUT with the place, SM_IO. */
sm_status sm_io_library(const char *const *path, size_t n, sm_arena *arena, const sm_library **out,
                        sm_error *err);
/* Load a model by what sm_io_model_source takes. SM_BAD_INPUT
 * when the name is unknown (and names the nearest) or the file is no config, SM_IO when it cannot
 * be read. The model points into the arena, which must outlive it and all that is made from it. */
sm_status sm_io_model_load(const char *name_or_path, sm_arena *arena, sm_model *model,
                           sm_error *err);

/* A --system FILE: {"chips":[{...}]} or one chip object; the schema is in docs/system-file.md.
 * "base": a catalogue chip whose values are kept where the file is silent. Strings live in the
 * arena. SM_BAD_INPUT with line and column of what is wrong, SM_INTERNAL when out of memory. */
sm_status sm_io_chips_parse(const sm_source *source, sm_arena *arena, sm_chip **chips, size_t *n,
                            sm_error *err);
/* The keys of that schema into an object of data: numbers, and in "sources" where each comes from.
 * What sm_io_chips_parse reads of it is the same chip. False when out of memory. */
bool sm_io_chip_put(const sm_chip *chip, sm_data *object, sm_arena *arena);
/* The same as JSON text in the arena; NULL when out of memory. */
char *sm_io_chip_format(const sm_chip *chip, sm_arena *arena);

/* ---- measured rows: docs/truth-data.md ---- */
/* A file of measured rows: CSV with a header (columns in any order, others passed over), one JSON
 * object a line, a list of them, or the result of a benchmark tool as it wrote it. The kind is told
 * by the header or by the keys of the first row. Texts and rows live in the arena. What a row does
 * not state is NAN, 0, SM_UNSTATED or "" (truth.h); a row without a time has measured_s NAN. A
 * value of the wrong type, a row with too few or too many cells, or a file of no known kind is
 * SM_BAD_INPUT with line, column and what was expected. At most 1,000,000 rows. What reads well and
 * looks wrong is a warning of *truth: times or memory off by a unit, degrees that do not make up
 * the devices, printed figures that contradict each other, rows of one configuration more than a
 * factor of two apart, one id twice. */
sm_status sm_truth_parse(const sm_source *source, sm_arena *arena, sm_truth *truth, sm_error *err);
/* Read the file at path as sm_truth_parse does. SM_IO when it cannot be read. */
sm_status sm_truth_read(const char *path, sm_arena *arena, sm_truth *truth, sm_error *err);
/* What rows that are silent about it state: each "COLUMN=VALUE", "parallel.tp=8". */
typedef struct sm_truth_given {
    size_t n;
    const sm_source *pair;
    bool fold; /* of a configuration measured often keep at most SM_TRUTH_MOST_ALIKE rows: of
                  neighbours in time one, of their geometric mean, stands for both */
    const sm_truth_kind *kind; /* rows of others may lack the columns; NULL: none may */
} sm_truth_given;
enum { SM_TRUTH_MOST_ALIKE = 32 };
/* The same of rows that need not state all: what results of benchmark tools (AIPerf, vllm bench
 * serve, InferenceX) do not say. SM_BAD_INPUT at a pair that names no column of such rows. */
sm_status sm_truth_read_given(const char *path, const sm_truth_given *given, sm_arena *arena,
                              sm_truth *truth, sm_error *err);
/* The benchmark tools whose results are read: the name of the i-th, from 0; NULL beyond the end. */
const char *sm_truth_tool_name(size_t i);
/* What a tool calls a column of rows of inference, "median_ttft_ms" for "measured.ttft_ms", and how
 * many of the column's unit its own is; NULL: it does not tell it. */
const char *sm_truth_tool_key(size_t i, const char *column, double *times);
/* Fill a row of a kind that states nothing yet: NAN, 0, SM_UNSTATED and "". */
void sm_truth_row_blank(sm_truth_kind kind, sm_truth_row *row);
/* Add a row to a file of JSON lines, which is made where there is none; it reads back as it was,
 * but for its id where it has none. The old file stays whole until the new one is. SM_BAD_INPUT
 * when the file holds rows of another kind, or is CSV. */
sm_status sm_truth_append(const char *path, const sm_truth_row *row, sm_error *err);
/* Would sm_truth_append refuse rows of this kind? The same errors, before there is a row. */
sm_status sm_truth_append_check(const char *path, sm_truth_kind kind, sm_error *err);

/* ---- traces of requests: docs/simulate.md ---- */
/* CSV with a header (columns in any order, others passed over) or one JSON object a line, plain or
 * packed. Columns or keys arrival_s, prompt_tokens, output_tokens, and where known prefix_id with
 * prefix_tokens, conversation_id; or those of the public traces: TIMESTAMP, ContextTokens,
 * GeneratedTokens (Azure), timestamp in ms, input_length, output_length, hash_ids (Mooncake). Dates
 * count from the first request. Read as a stream: memory does not grow with the file. What is wrong
 * is SM_BAD_INPUT with line and column: an unknown header, arrivals that go back, prompts of no
 * token or of more than 1e9, what is no number. */
typedef struct sm_request_file sm_request_file;
/* Open a file of requests and read its header. SM_IO when it cannot be read, SM_BAD_INPUT when its
 * header is not known, SM_INTERNAL when out of memory; *file is NULL then. */
sm_status sm_request_file_open(const char *path, sm_request_file **file, sm_error *err);
/* Read requests from a text in memory, which must outlive the file. Errors as sm_request_file_open.
 */
sm_status sm_request_file_of(const sm_source *source, sm_request_file **file, sm_error *err);
/* The requests of a file one by one. The file must outlive what is returned, and its source or path
 * the file. */
sm_arrivals sm_request_arrivals(sm_request_file *file);
/* Go back to the first request, to read them again. SM_IO when the file cannot be read again. */
sm_status sm_request_file_rewind(sm_request_file *file, sm_error *err);
/* Close the file and free it. NULL is fine. */
void sm_request_file_close(sm_request_file *file);
/* Requests of a trace, drawn ones, or those of a trace at drawn times: at most so many. */
typedef struct sm_request_source sm_request_source;
/* trace: NULL for drawn ones; drawn: NULL for those of a trace as they came. SM_USAGE without
 * either; errors as sm_request_file_open. *out is NULL then. */
sm_status sm_request_source_open(const char *trace, const sm_synthetic *drawn, double most,
                                 sm_request_source **out, sm_error *err);
/* From the beginning, at `rate` times their own rate: of sm_rated_arrivals (simulate.h), whose
 * context is the source. */
sm_status sm_request_source_begin(void *source, double rate, sm_arrivals *arrivals, sm_error *err);
/* Close it. NULL is fine. */
void sm_request_source_close(sm_request_source *source);
/* Mean lengths of the first so many requests of a trace, in place of those that are not above 0.
 * What cannot be read twice, as a pipe, is left as it is. Errors as sm_request_file_open. */
sm_status sm_request_trace_lengths(const char *trace, double most, sm_lengths *lengths,
                                   sm_error *err);
/* ---- requests of OpenAI's completions API ---- */
enum {
    SM_COMPLETION_BYTES = 256, /* words that a text is made of: its bytes */
    SM_COMPLETION_STOPS = 4,
    SM_COMPLETION_STOP_BYTES = 64,
    SM_COMPLETION_STOP_WORDS = 64
};
/* Words that stand for pictures: row r of the k-th of a prompt has vocabulary + k x rows + r. */
typedef struct sm_picture_words {
    int vocabulary;
    int32_t word; /* what stands for a picture, or for each of its rows, in a prompt; -1: none */
    size_t rows;  /* of a picture */
} sm_picture_words;
/* The words of a prompt, so many, with those of its pictures, *n then: where `word` is, or, without
 * it, first. NULL `words`: nothing but pictures. *out lives in the arena. SM_BAD_INPUT when `word`
 * stands there another number of times. */
sm_status sm_pictures_place(const sm_picture_words *p, size_t pictures, const int32_t *words,
                            size_t *n, sm_arena *arena, int32_t **out, sm_error *err);
typedef struct sm_completion_limits {
    const char *model;  /* the one that is served */
    size_t most_tokens; /* of a prompt and its completion, at least 2 */
    int vocabulary;
    size_t pictures; /* of a prompt; 0: the model sees none */
    sm_picture_words seen;
} sm_completion_limits;
typedef struct sm_completion {
    bool bytes; /* the prompt was a text, whose bytes are words; else numbers of words */
    size_t pictures;
    sm_source *picture; /* a file of safetensors each */
    int32_t *prompt;    /* with the words of pictures */
    size_t prompt_tokens;
    size_t most;        /* tokens of the completion; prompt and it are within limits */
    double temperature; /* 0: the best word each time */
    uint64_t seed;
    bool seeded, stream, usage; /* usage: the last part of a stream tells it */
    int stops;
    const char *stop[SM_COMPLETION_STOPS]; /* of 1 to SM_COMPLETION_STOP_BYTES bytes */
    int32_t *stop_word;
    size_t stop_words;
} sm_completion;
/* Read the body of a request, JSON; what it points to lives in the arena. SM_BAD_INPUT with the
 * place of what is wrong, beyond the limits, or asks for what is not done. */
sm_status sm_completion_parse(const sm_source *source, const sm_completion_limits *limits,
                              sm_arena *arena, sm_completion *out, sm_error *err);

/* ---- safetensors: arrays by name, written in single precision ---- */
enum { SM_SAFETENSOR_RANK = 8 };
typedef struct sm_safetensor {
    const char *name;
    int rank;
    size_t shape[SM_SAFETENSOR_RANK];
    const float *data; /* to be written; NULL in what was read, which lies */
    const char *path;  /* in this file */
    const char *held;  /* or, not NULL, in these bytes */
    uint64_t at;       /* from this byte on, */
    uint64_t bytes;    /* so many */
    sm_dtype type; /* fp32, fp16, bf16, fp8 (e4m3), int8; SM_DTYPE_COUNT: one that is not read */
    bool checked;  /* the file says its checksum: CRC-32 of its bytes */
    uint32_t checksum;
} sm_safetensor;
typedef struct sm_safetensors {
    size_t n;
    sm_safetensor *tensor; /* by name, in the arena */
    uint64_t steps;        /* "steps" of its metadata, 0 when not there */
    uint32_t checksum;     /* CRC-32 of all headers: what it is, told apart from others */
} sm_safetensors;
/* What a file, or a checkpoint folder, holds: the headers are read, the data stays where it is.
 * A folder: one with `latest`, which names a folder in it; or with model.safetensors.index.json as
 * Hugging Face has it, and optimizer.safetensors.index.json beside it where there is one; or with
 * model.safetensors. SM_BAD_INPUT says what is cut short, misplaced, missing, or of another
 * step. */
sm_status sm_io_safetensors_read(const char *path, sm_arena *arena, sm_safetensors *out,
                                 sm_error *err);
/* The same of a file that is held in memory, where it must stay while its tensors are read. */
sm_status sm_io_safetensors_held(const sm_source *file, sm_arena *arena, sm_safetensors *out,
                                 sm_error *err);
/* The tensor of this name, by binary search. NULL if absent. */
const sm_safetensor *sm_safetensors_find(const sm_safetensors *file, const char *name);
/* The data of a tensor that was read, in single precision: as many numbers as its shape says.
 * SM_BAD_INPUT when the file has changed since, its bytes are not those that were written, or its
 * type is none of those above. Threads may share the tensor. */
sm_status sm_io_safetensor_load(const sm_safetensor *tensor, float *to, sm_error *err);
/* The same of elements [first, first + numbers): no other part of the file is read, unless it tells
 * a checksum, which is of all. */
sm_status sm_io_safetensor_load_part(const sm_safetensor *tensor, size_t first, size_t numbers,
                                     float *to, sm_error *err);
/* Bytes [first, first + bytes) of a tensor's data, whatever its type. SM_IO, or SM_BAD_INPUT where
 * the tensor or the file ends before. */
sm_status sm_io_safetensor_load_bytes(const sm_safetensor *tensor, size_t first, size_t bytes,
                                      void *to, sm_error *err);
/* Read a header alone, of a file with so many bytes of data. SM_BAD_INPUT as
 * sm_io_safetensors_read. */
sm_status sm_io_safetensors_parse(const sm_source *header, uint64_t data_bytes, sm_arena *arena,
                                  sm_safetensors *out, sm_error *err);

/* n tensors and the step count as a stream to a file beside path, which takes its place when all is
 * there, as sm_io_write does. The tensors (data is not looked at) and path must outlive the writer.
 */
typedef struct sm_safetensors_writer sm_safetensors_writer;
/* Begin to write: a file beside path, with room for the header. Names are of letters, digits, dots
 * and underscores. SM_IO when it cannot be written, SM_INTERNAL when out of memory; *out is NULL
 * then. */
sm_status sm_io_safetensors_begin(const char *path, size_t n, const sm_safetensor *tensor,
                                  uint64_t steps, sm_safetensors_writer **out, sm_error *err);
/* Write the numbers of the next tensor; of the same one again where `numbers` is less than it has.
 * SM_IO when it cannot be written, SM_INTERNAL beyond the last tensor. After a failure the writer
 * can only be abandoned. */
sm_status sm_io_safetensors_put(sm_safetensors_writer *w, const float *data, size_t numbers,
                                sm_error *err);
/* Put the file in its place: every tensor was put (SM_INTERNAL when not). Frees the writer,
 * whatever comes of it. checksum: of the header, which holds those of the data. SM_IO when it
 * cannot be written. */
sm_status sm_io_safetensors_end(sm_safetensors_writer *w, uint32_t *checksum, sm_error *err);
/* Remove what was written and free the writer; path stays as it was. NULL is fine. */
void sm_io_safetensors_abandon(sm_safetensors_writer *w);

/* ---- an index: which file of a folder holds which tensor ---- */
typedef struct sm_shard { /* a file of the folder */
    const char *name;
    bool checked; /* the index says the checksum of its header */
    uint32_t checksum;
} sm_shard;
typedef struct sm_shard_place {
    const char *name; /* of the tensor */
    size_t shard;
} sm_shard_place;
typedef struct sm_shard_index {
    uint64_t steps, bytes; /* 0 when not there; bytes of all data */
    size_t shards, n;
    sm_shard *shard;
    sm_shard_place *place;
} sm_shard_index;
/* Read an index (model.safetensors.index.json): "weight_map", and of "metadata" total_size, steps
 * and headers. Places are sorted by name; all lives in the arena. SM_BAD_INPUT when it is no JSON
 * or has no weight_map. */
sm_status sm_io_shard_index_parse(const sm_source *source, sm_arena *arena, sm_shard_index *out,
                                  sm_error *err);
/* Write an index as JSON, atomically as sm_io_write does. SM_IO when it cannot be written. */
sm_status sm_io_shard_index_write(const char *path, const sm_shard_index *index, sm_error *err);

/* ---- what a checkpoint holds, by its headers ---- */
typedef struct sm_checkpoint_size {
    const char *name; /* of the file that says it: "model.safetensors.index.json". Static text */
    double bytes;     /* of all tensors */
    double elements;  /* of all tensors; 0: an index alone does not say */
} sm_checkpoint_size;
/* The checkpoint beside a config: the index model.safetensors.index.json with those of its files
 * that are there, or model.safetensors. Only headers are read, of any data type. size->name is NULL
 * when there is none that can be read. SM_INTERNAL when out of memory. */
sm_status sm_io_checkpoint_beside(const char *config, sm_arena *arena, sm_checkpoint_size *size,
                                  sm_error *err);

/* ---- versions of a checkpoint: FOLDER/latest names FOLDER/step-000123 ----
 * Each is written as FOLDER/step-000123.tmp and renamed when it is whole; then latest is replaced,
 * then old ones are removed: whatever ends the process, latest names a whole version. */
enum { SM_CHECKPOINT_NAME = 64 };
/* Begin a version: make the folder where it is missing, remove what a process that was killed has
 * left unfinished, and make NAME.tmp in it. SM_IO with the path and the reason. */
sm_status sm_io_checkpoint_begin(const char *folder, uint64_t steps, char name[SM_CHECKPOINT_NAME],
                                 sm_error *err);
/* Publish a version: NAME.tmp is whole and its files are on the disk. The latest `keep` versions
 * stay. SM_IO with the path and the reason. */
sm_status sm_io_checkpoint_end(const char *folder, const char *name, int keep, sm_error *err);
/* Remove NAME.tmp, and NAME unless latest names it. Failures are passed over. */
void sm_io_checkpoint_abandon(const char *folder, const char *name);
SM_DECLARATIONS_END
