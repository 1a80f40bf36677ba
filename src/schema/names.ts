/** Branded identifiers. A value of these types has passed its zod schema; there is no other way to create one. */
import { z } from 'zod';

/** A DNS label without `--`, so that `svc-slot-<slot>--<revision>` is a valid and unambiguous object name. */
export const SLOT_NAME_PATTERN = '^[a-z](?:-?[a-z0-9])*$';
export const SLOT_NAME_LENGTH = 40;

export const SLOT_NAME_RULE =
  'A slot name consists of lower-case letters, digits and single hyphens, starts with a letter and has at most 40 characters';

export const SlotName = z
  .string()
  .max(SLOT_NAME_LENGTH, SLOT_NAME_RULE)
  .regex(new RegExp(SLOT_NAME_PATTERN), SLOT_NAME_RULE)
  .brand('SlotName');
export type SlotName = z.output<typeof SlotName>;

/**
 * A catalogue id, or the path of a file below the model store (`dir/file.gguf`).
 * It is never absolute and has no empty, `.` or `..` part, so joining it to a directory cannot leave that directory.
 * The pattern uses no look-ahead, which the regex engines of Kubernetes and of some editors do not support.
 */
export const MODEL_ID_PATTERN =
  '^(?:[A-Za-z0-9_]|\\.[A-Za-z0-9_:@+-]|\\.\\.[A-Za-z0-9_.:@+-])[A-Za-z0-9_.:@+-]*' +
  '(?:/(?:[A-Za-z0-9_:@+-]|\\.[A-Za-z0-9_:@+-]|\\.\\.[A-Za-z0-9_.:@+-])[A-Za-z0-9_.:@+-]*)*$';

export const MODEL_ID_RULE = 'A model id consists of letters, digits and "._:@+-" in parts separated by "/", and no part is "." or ".."';

export const ModelId = z
  .string()
  .max(200, 'A model id has at most 200 characters')
  .regex(new RegExp(MODEL_ID_PATTERN), MODEL_ID_RULE)
  .brand('ModelId');
export type ModelId = z.output<typeof ModelId>;

/** Identifies a workload within its runtime: a container id, a process id with its start time, or the uid of a Deployment. Opaque outside the runtime. */
export const WorkloadId = z.string().min(1).brand('WorkloadId');
export type WorkloadId = z.output<typeof WorkloadId>;

/** A hash (twelve hexadecimal digits) of everything in a workload that users or this project decide. */
export const Revision = z
  .string()
  .regex(/^[0-9a-f]{12}$/)
  .brand('Revision');
export type Revision = z.output<typeof Revision>;

export const VOICE_NAME_RULE =
  'A voice name consists of letters, digits, "-" and "_", starts with a letter or a digit and has at most 64 characters';

/** The name of a stored voice. It is one part of a path at most, and never `.` or `..`. Capitals and small letters count as the same. */
export const VoiceName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, VOICE_NAME_RULE)
  .brand('VoiceName');
export type VoiceName = z.output<typeof VoiceName>;
