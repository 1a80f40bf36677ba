/** The answers of `/api/profiles` as schemas. */
import { z } from 'zod';
import { Plan, Problem } from './answers.ts';
import { ProfileName, SlotName } from '../words/names.ts';

const SwitchedSlot = z.object({
  name: SlotName,
  result: z
    .enum(['unchanged', 'created', 'updated', 'disabled'])
    .describe('What a switch does with the slot; "disabled": the profile does not have it'),
});

const profile = {
  name: ProfileName,
  active: z.boolean().describe('The slots are as this profile has them; found by comparison, and not stored'),
  problems: z.array(Problem).describe('Why it cannot be switched to'),
};

export const ProfileEntry = z.object({
  ...profile,
  slots: z.array(SwitchedSlot).describe('The slots of the profile and those that it does not have; those with a mistake are missing'),
});

export const Profiles = z.object({
  profiles: z.array(ProfileEntry),
  problems: z.array(Problem).describe('Of what is no profile, though it is where profiles are'),
});

export const ProfileDetail = z.object({
  ...profile,
  resource_version: z.string().describe('For "If-Match"; changes whenever the profile or a slot changes'),
  slots: z.array(SwitchedSlot.extend({ spec: z.record(z.string(), z.unknown()).describe('The document of the slot after a switch') })),
});

export const SwitchedProfile = z.object({
  dry_run: z.boolean(),
  name: ProfileName,
  resource_version: z.string().describe('What the plan was made from'),
  slots: z.array(SwitchedSlot),
  plan: Plan.describe('What the controller does about it'),
});
