/**
 * A recording of a machine: everything that the hardware probe read from it, as JSON. `svcctl hardware record` writes one, and `SVC_HARDWARE_FILE` puts one in
 * the place of the machine. It contains no serial numbers, no UUIDs and no host name, because the probe does not keep them.
 */
import { z } from 'zod';

const MAX_ENTRIES = 5000;
const MAX_TEXT = 256 * 1024;
const Text = z.string().max(MAX_TEXT);
const FilePath = z.string().startsWith('/', 'Use an absolute path').max(1000);
const Texts = z.record(FilePath, Text).refine((all) => Object.keys(all).length <= MAX_ENTRIES, 'Use fewer files');

export const HardwareRecordingSchema = z.strictObject({
  format: z.literal(1),
  about: z.string().max(1000).describe('Which machine this is, and where its facts come from'),
  platform: z.string().max(40).describe('As Node names it: `linux`, `darwin`'),
  architecture: z.string().max(40).describe('As Node names it: `x64`, `arm64`'),
  memory: z
    .strictObject({ total_bytes: z.int().min(0), available_bytes: z.int().min(0) })
    .optional()
    .describe('Used where neither "/proc/meminfo" nor a tool reports the memory'),
  files: Texts.describe('The text of each file, by its path'),
  links: Texts.describe('The last part of what each symbolic link points to, by its path'),
  present: z.array(FilePath).max(MAX_ENTRIES).describe('Device files and other files whose text is of no interest'),
  tools: z.record(z.string().max(1000), Text).describe('What each command printed, by the command with its arguments'),
});

export type HardwareRecording = z.infer<typeof HardwareRecordingSchema>;
