/** Fails where a store cannot be written to, before anything is made in it. */
import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { codeOf } from '../../platform/error-text.ts';

/** Throws unless the directory, or the closest existing one above it, is writable. `mkdir` on a read-only volume fails with a misleading ENOENT. */
export async function failUnlessWritable(directory: string): Promise<void> {
  try {
    await access(directory, constants.W_OK);
  } catch (error) {
    const above = path.dirname(directory);
    if (codeOf(error) !== 'ENOENT' || above === directory) throw error;
    await failUnlessWritable(above);
  }
}
