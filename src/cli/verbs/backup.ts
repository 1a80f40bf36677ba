/**
 * `svcctl backup FILE` and `svcctl restore FILE`: configuration and state of the service of this machine in a gzipped
 * tar file, models by name only. Both work beside a running service, which replaces its files as a whole.
 */
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chown, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { createTarDecoder, createTarPacker, type TarHeader } from 'modern-tar';
import { openRegularFile, readRegularBytes, UnsuitableFile } from '../../files/regular-file.ts';
import { explainWriteError, ifThere, writeFileAtomically, type FileOwner } from '../../files/write-file.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import {
  BACKUP_FILE_BYTES,
  BACKUP_FORMAT,
  BACKUP_LIMITS,
  BACKUP_MANIFEST,
  isBackedUp,
  judgeBackupMember,
  parseManifest,
  type BackupManifest,
  type BackupPlace,
} from '../decide/backup-members.ts';
import { configDirOf, readVersion, stateDirOf, withCheckoutSettings, withServiceSettings } from '../installation.ts';
import { CliFailure } from '../output/exit-codes.ts';
import { sizeText } from '../output/output.ts';
import type { Cli } from '../verb.ts';
import { presentModels, storeRoot, catalogueOf } from '../checks/verify-models.ts';

interface BackupOptions {
  readonly checkout?: boolean;
}

type Roots = Readonly<Record<BackupPlace, string>>;

/** Owners are stored by role, because the user of the service has another id on another machine. */
const OF_SERVICE = 'service';
/** The archive, and copies of what was replaced, contain the secrets of "api.env". */
const OWN_READ_WRITE = 0o600;
/** No restored file is executable, or writable for others than its owner. */
const MODE_MASK = 0o644;
/** A tar file has a header for each member, which is padded, and ends with zeros. */
const HEADERS_BYTES = BACKUP_LIMITS.members * 2048;

function rootsOf(cli: Cli, { checkout }: BackupOptions): { readonly roots: Roots; readonly env: Cli['env'] } {
  const env = checkout === true ? withCheckoutSettings(cli.env) : withServiceSettings(cli.env);
  return { roots: { config: configDirOf(env), state: stateDirOf(env) }, env };
}

/** Files of the service belong to the owner of its state directory. */
async function ownerOf({ state }: Roots) {
  return await lstat(state).catch(() => {
    const hint = 'Install the service first, or give --checkout for one that "npm start" runs';
    throw new CliFailure(`The state directory "${state}" does not exist`, { hint });
  });
}

export async function runBackup(cli: Cli, options: BackupOptions, file: string): Promise<void> {
  const { roots, env } = rootsOf(cli, options);
  const owner = await ownerOf(roots);
  const models = await modelsOf({ env, terminal: cli.terminal });
  const now = new Date(cli.now());
  const manifest: BackupManifest = { format: BACKUP_FORMAT, version: readVersion(), created_at: now.toISOString(), models };
  const target = path.resolve(file);
  const temporary = `${target}.${randomUUID().slice(0, 8)}.tmp`;
  const { readable, controller } = createTarPacker();
  let count = 0;
  const add = async (header: Omit<TarHeader, 'size'>, bytes: Uint8Array): Promise<void> => {
    const member = controller.add({ ...header, size: bytes.length, type: 'file' }).getWriter();
    if (bytes.length > 0) await member.write(bytes);
    await member.close();
  };
  const fill = async (): Promise<void> => {
    await add({ name: BACKUP_MANIFEST, mtime: now }, Buffer.from(`${JSON.stringify(manifest, undefined, 1)}\n`));
    for (const place of ['config', 'state'] as const)
      for await (const name of listFiles(roots[place], place)) {
        await using handle = await openRegularFile(path.join(roots[place], name), { follow: false, mostBytes: BACKUP_FILE_BYTES });
        const { mode, uid, gid, mtime } = await handle.stat();
        const roles = { uname: uid === owner.uid ? OF_SERVICE : 'root', gname: gid === owner.gid ? OF_SERVICE : 'root' };
        await add({ name: `${place}/${name}`, mode: mode & 0o777, mtime, ...roles }, await handle.readFile());
        count += 1;
      }
    controller.finalize();
  };
  try {
    const written = pipeline(readable, createGzip(), createWriteStream(temporary, { flags: 'wx', mode: OWN_READ_WRITE, flush: true }));
    await Promise.all([fill().catch((error: unknown) => controller.error(error)), written]);
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw explain(error, target);
  }
  cli.terminal.line(
    `Saved ${count} files, and the names of ${models.length} models, in "${target}" (${sizeText((await lstat(target)).size)})`,
  );
  cli.terminal.note('Keep the archive secret: it contains the settings of the service with their secrets');
}

/** Models of the store, by the names that pull them. */
async function modelsOf(service: Pick<Cli, 'env' | 'terminal'>): Promise<string[]> {
  return [...(await presentModels(storeRoot(service, {}), await catalogueOf(service), new AbortController().signal))];
}

/** Only regular files: links are skipped. `name`: relative to the root, empty for the root itself. */
async function* listFiles(root: string, place: BackupPlace, name = ''): AsyncGenerator<string> {
  for (const entry of await readdir(path.join(root, name), { withFileTypes: true })) {
    const inner = path.posix.join(name, entry.name);
    if (!isBackedUp(place, inner.split('/'))) continue;
    if (entry.isDirectory()) yield* listFiles(root, place, inner);
    else if (entry.isFile()) yield inner;
  }
}

export async function runRestore(cli: Cli, options: BackupOptions, file: string): Promise<void> {
  const { roots, env } = rootsOf(cli, options);
  const owner = await ownerOf(roots);
  let manifest: BackupManifest | undefined;
  // The whole archive is judged before anything is written.
  for await (const member of readMembers(file)) ({ manifest } = member);
  if (manifest === undefined) throw refusal(file, 'no files');
  const kept = path.join('replaced', new Date(cli.now()).toISOString().replaceAll(':', '-'));
  const restored: string[] = [];
  let replaced = 0;
  for await (const member of readMembers(file)) {
    const result = await restoreFile(member, { roots, owner, kept }).catch((error: unknown) => {
      throw explain(error, path.join(roots[member.place], member.name));
    });
    if (result !== 'same') restored.push(`${member.place}/${member.name}`);
    if (result === 'replaced') replaced += 1;
  }
  cli.terminal.line(`Restored ${restored.length} files of the backup of ${manifest.created_at}`);
  if (replaced > 0) cli.terminal.line(`Kept the ${replaced} files that were replaced in "${path.join(roots.state, kept)}"`);
  const present = await modelsOf({ env, terminal: cli.terminal });
  for (const model of manifest.models.filter((each) => !present.includes(each)))
    cli.terminal.line(`Model missing: svcctl model pull ${model}`);
  // Slots, profiles, tokens, models, toolboxes and the catalogue are watched.
  if (restored.some((name) => /^state\/(?!catalogue\.)|^config\/api\.env$/.test(name)))
    cli.terminal.note(
      'Restart the service: it reads settings, history, voices and accepted files when it starts ("systemctl restart svc-api")',
    );
}

interface Member {
  readonly manifest: BackupManifest;
  readonly place: BackupPlace;
  readonly name: string;
  readonly header: TarHeader;
  readonly bytes: Buffer;
}

/** Throws for an archive that is damaged, or has a member that no backup contains. */
async function* readMembers(file: string): AsyncGenerator<Member> {
  const soFar = { bytes: 0, members: 0 };
  const seen = new Set<string>();
  let manifest: BackupManifest | undefined;
  try {
    await using handle = await openRegularFile(path.resolve(file), { mostBytes: Number.MAX_SAFE_INTEGER });
    const gunzip = createGunzip();
    // An error of either stream ends the loop.
    void pipeline(handle.createReadStream({ autoClose: false }), gunzip).catch(() => undefined);
    const entries = ReadableStream.from<Uint8Array>(limited(gunzip)).pipeThrough(createTarDecoder({ strict: true }));
    for await (const { header, body } of entries) {
      const verdict = judgeBackupMember({ ...header, type: header.type, sizeBytes: header.size, linkName: header.linkname }, soFar);
      if (verdict.kind === 'refuse') throw refusal(file, verdict.message);
      const bytes = Buffer.from(await new Response(body).arrayBuffer());
      soFar.bytes += bytes.length;
      soFar.members += 1;
      if (seen.has(header.name)) throw refusal(file, `${JSON.stringify(header.name)} twice`);
      seen.add(header.name);
      if ((verdict.kind === 'manifest') !== (soFar.members === 1)) throw refusal(file, `no "${BACKUP_MANIFEST}" at its beginning`);
      if (verdict.kind === 'manifest') {
        const parsed = parseManifest(parseJson(bytes.toString('utf8')));
        if (typeof parsed === 'string') throw refusal(file, parsed);
        manifest = parsed;
      } else if (manifest !== undefined) yield { manifest, place: verdict.place, name: verdict.path, header, bytes };
    }
  } catch (error) {
    if (error instanceof CliFailure) throw error;
    if (/^E[A-Z]+$/.test(codeOf(error)) || error instanceof UnsuitableFile) throw explain(error, file);
    throw refusal(file, `damaged contents (${messageOf(error)})`);
  }
}

async function* limited(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let total = 0;
  for await (const chunk of chunks) {
    total += chunk.length;
    if (total > BACKUP_LIMITS.bytes + HEADERS_BYTES) throw new Error('too large');
    yield chunk;
  }
}

const refusal = (file: string, message: string): CliFailure =>
  new CliFailure(`Nothing was restored: the archive "${file}" has ${message}`, { hint: 'Use a file that "svcctl backup" wrote' });

function explain(error: unknown, file: string): CliFailure {
  if (error instanceof CliFailure) return error;
  const hint = ['EACCES', 'EPERM'].includes(codeOf(error)) ? 'Run it as root: its files belong to several users' : undefined;
  return new CliFailure(explainWriteError(file, error), { hint, cause: error });
}

/** A file that exists keeps its owner and its mode, and a copy in `kept`. */
async function restoreFile(
  { place, name, header, bytes }: Member,
  { roots, owner, kept }: { readonly roots: Roots; readonly owner: FileOwner; readonly kept: string },
): Promise<'same' | 'new' | 'replaced'> {
  const target = path.join(roots[place], name);
  await makeDirectories(roots[place], path.dirname(name), owner);
  const facts = await ifThere(lstat(target));
  const present = facts === undefined ? undefined : await readRegularBytes(target, { follow: false, mostBytes: BACKUP_FILE_BYTES });
  if (present?.equals(bytes) === true) return 'same';
  if (present !== undefined) {
    const copy = path.join(kept, place, name);
    await makeDirectories(roots.state, path.dirname(copy), owner);
    await writeFileAtomically(path.join(roots.state, copy), present, { mode: OWN_READ_WRITE, directory: 'existing' });
  }
  const uid = facts?.uid ?? (header.uname === OF_SERVICE ? owner.uid : 0);
  const gid = facts?.gid ?? (header.gname === OF_SERVICE ? owner.gid : 0);
  const mode = ((facts ?? header).mode ?? 0) & MODE_MASK;
  await writeFileAtomically(target, bytes, { mode: mode | OWN_READ_WRITE, owner: { uid, gid }, sync: true, directory: 'existing' });
  return present === undefined ? 'new' : 'replaced';
}

/** Follows no link: the user of the service may write where root restores. */
async function makeDirectories(root: string, directory: string, owner: FileOwner): Promise<void> {
  let place = root;
  for (const part of directory === '.' ? [] : directory.split('/')) {
    place = path.join(place, part);
    const facts = await ifThere(lstat(place));
    if (facts === undefined) {
      await mkdir(place, 0o750);
      await chown(place, owner.uid, owner.gid).catch(() => undefined);
    } else if (!facts.isDirectory()) throw new CliFailure(`"${place}" is not a directory`, { hint: 'Move it away' });
  }
}
