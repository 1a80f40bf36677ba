/** Reads a recording of a machine from a file. */
import { readFile, stat } from 'node:fs/promises';
import { messageOf } from '../../platform/error-text.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { HardwareRecordingSchema, type HardwareRecording } from '../../schema/hardware-recording.ts';
import { checkDocument, formatProblem } from '../../schema/slot/spec-problem.ts';

const MAX_BYTES = 8 * 1024 * 1024;

/** Fails with what is wrong and where, for a file that is missing, too large, or no recording. */
export async function readRecording(file: string): Promise<Result<HardwareRecording>> {
  const refuse = (message: string): Result<never> => fail('stalled', 'SettingUnusable', message);
  let document: unknown;
  try {
    const { size } = await stat(file);
    if (size > MAX_BYTES) return refuse(`Use a recording of at most 8 MiB: "${file}" has ${size} bytes`);
    document = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    return refuse(`Write a recording with "svcctl hardware record > FILE": "${file}" cannot be read (${messageOf(error)})`);
  }
  const parsed = checkDocument(HardwareRecordingSchema, document, 'camelCase');
  if (parsed.ok) return ok(parsed.value);
  return refuse(`Correct the recording "${file}": ${parsed.problems.map((problem) => formatProblem(problem, 'camelCase')).join('; ')}`);
}
