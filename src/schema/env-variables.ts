/** The names and values of environment variables, in a slot's own table and in those of its pods. */
import { z } from 'zod';

export const ENV_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_]*$';
export const ENV_NAME_RULE = 'The name of an environment variable consists of letters, digits and "_" and does not start with a digit';

export const EnvName = z.string().regex(new RegExp(ENV_NAME_PATTERN), ENV_NAME_RULE);

export const PlainText = z
  .string()
  // eslint-disable-next-line no-control-regex -- NUL or a line break would end an argument or a line of an env file early
  .regex(/^[^\x00\r\n]*$/, 'Line breaks and NUL characters are not allowed here');
