/** `node stage-docs.mjs RELEASE [OUT]`: stages the documentation as the release does and, with a second directory, packs it as a package of version 1.2.3. */
import { buildDeb } from '../../scripts/stage/build-deb.mjs';
import { stageDocs } from '../../scripts/stage/stage-service.mjs';

const [, , release, out] = process.argv;
stageDocs(release);
if (out !== undefined) buildDeb({ release, out, version: '1.2.3' });
