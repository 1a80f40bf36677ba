/** The branded names of the project. A value of these types has passed its zod schema; there is no other way to make one. */
import { z } from 'zod';

/** With at most `SLOT_NAME_LENGTH` characters: a DNS label without `--`, so that `svc-slot-<slot>--<revision>` stays a legal, unambiguous object name. */
export const SLOT_NAME_PATTERN = '^[a-z](?:-?[a-z0-9])*$';
export const SLOT_NAME_LENGTH = 40;

export const SLOT_NAME_RULE =
  'A slot name holds lower-case letters, digits and single hyphens, begins with a letter and has at most 40 characters';

export const SlotName = z
  .string()
  .max(SLOT_NAME_LENGTH, SLOT_NAME_RULE)
  .regex(new RegExp(SLOT_NAME_PATTERN), SLOT_NAME_RULE)
  .brand('SlotName');
export type SlotName = z.output<typeof SlotName>;

/**
 * A catalogue id, or the path of a file below the model store (`dir/file.gguf`).
 * Never absolute, never with an empty, `.` or `..` part, so that joining it to a directory cannot leave that directory.
 * Without look-ahead, which the engines of Kubernetes and of some editors do not have.
 */
export const MODEL_ID_PATTERN =
  '^(?:[A-Za-z0-9_]|\\.[A-Za-z0-9_:@+-]|\\.\\.[A-Za-z0-9_.:@+-])[A-Za-z0-9_.:@+-]*' +
  '(?:/(?:[A-Za-z0-9_:@+-]|\\.[A-Za-z0-9_:@+-]|\\.\\.[A-Za-z0-9_.:@+-])[A-Za-z0-9_.:@+-]*)*$';

export const MODEL_ID_RULE = 'A model id holds letters, digits and "._:@+-", with "/" between parts, and no part is "." or ".."';

export const ModelId = z
  .string()
  .max(200, 'A model id has at most 200 characters')
  .regex(new RegExp(MODEL_ID_PATTERN), MODEL_ID_RULE)
  .brand('ModelId');
export type ModelId = z.output<typeof ModelId>;

/** What a runtime calls one workload: a container id, a process id with its start time, a Deployment's uid. Opaque outside its runtime. */
export const WorkloadId = z.string().min(1).brand('WorkloadId');
export type WorkloadId = z.output<typeof WorkloadId>;

/** Twelve hexadecimal characters that stand for everything in a workload that a person or the project decides. */
export const Revision = z
  .string()
  .regex(/^[0-9a-f]{12}$/)
  .brand('Revision');
export type Revision = z.output<typeof Revision>;

export const BUILT_IN_SLOTS = ['primary', 'embed', 'stt', 'tts', 'img'] as const;
