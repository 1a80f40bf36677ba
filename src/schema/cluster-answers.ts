/** The answer of `/api/cluster` as a schema. */
import { z } from 'zod';
import { POD_PHASES } from './status/cluster-listing.ts';
import { SlotName } from './words/names.ts';

const Count = z.int().min(0);

const Pod = z.object({
  name: z.string(),
  slot: SlotName.nullable(),
  phase: z.enum(POD_PHASES),
  ready: z.boolean().describe('It gets requests'),
  terminating: z.boolean(),
  restarts: Count.describe('Of all its containers'),
  node: z.string().nullable().describe('Null while no node has accepted it'),
  created_at: z.iso.datetime().nullable(),
  reason: z
    .string()
    .nullable()
    .describe('Why it does not run; the conditions page of the reference lists all. Only the leader reads Events'),
  message: z.string().describe('The reason in words, with what to do; empty without one'),
});

export const Cluster = z.object({
  replica: z.string().nullable().describe('The replica of the gateway that answers; null if the service does not run in a cluster'),
  leader: z.string().nullable().describe('The replica of the gateway that leads, as far as the one that answers knows; null if none does'),
  leads: z.boolean().describe('Whether the replica that answers is the one that executes plans'),
  pods: z.array(Pod).describe('Those that do not get requests first'),
  pods_total: Count.describe('How many there are, also beyond the limit'),
  pods_ready: Count,
});
