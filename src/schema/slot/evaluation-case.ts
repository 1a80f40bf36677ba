/** One case of an evaluation: a request, and what its answer must satisfy. */
import { z } from 'zod';

export const evaluationCaseSchema = z.strictObject({
  /** Body of the request, without `model`. */
  request: z.record(z.string(), z.unknown()),
  expect: z.record(z.string(), z.unknown()),
  /** A case that must pass whatever share of the others does. Default: false. */
  required: z.boolean().optional(),
});

export type EvaluationCase = z.infer<typeof evaluationCaseSchema>;
