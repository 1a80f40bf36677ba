/** Explains why a model cannot be written below a directory. Pure. */
import { codeOf, messageOf } from '../../platform/error-text.ts';
import type { Failure } from '../../schema/words/failure.ts';

export function storageFailure(directory: string, error: unknown): Failure {
  const code = codeOf(error);
  if (code === 'EROFS' || code === 'EACCES' || code === 'EPERM') {
    const user = process.getuid?.() ?? 'of this process';
    const message = `Make "${directory}" writable for user ${user}, or put the model there: it is missing or damaged and cannot be fetched (${code})`;
    return { kind: 'stalled', reason: 'ModelStoreReadOnly', message };
  }
  const why = messageOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return { kind: 'stalled', reason: 'DiskFull', message: `Free disk space in "${directory}" for the model: ${why}` };
  }
  return { kind: 'retry', reason: 'ModelPullFailed', message: `The model cannot be written to "${directory}": ${why}` };
}
