// Renders each case on standard input with handlebars.js, one JSON text a line.
//
// A case is {template, data, partials}; the answer {text}, {refused} when the
// template is refused whatever the data, or {failed} when rendering raised.
// Objects print as JSON, which is where aeye means to differ.
'use strict';

const readline = require('readline');
const Handlebars = require(process.argv[2] + '/node_modules/handlebars');

// Where a program holds nothing but tags, handlebars.js adds the numbers it prints.
Handlebars.Utils.escapeExpression = (value) => (value == null ? '' : String(value));
const compiler = Handlebars.JavaScriptCompiler.prototype;
compiler.append = compiler.appendEscaped;

const say = (value) => (value == null ? '' : String(value));
// handlebars.js takes an undefined context for an empty object in some places.
const solid = (value) => (value == null ? 'nil' : value);
const helpers = {
  upper: (...args) => (args.length > 1 ? say(args[0]).toUpperCase() : ''),
  join: (...args) => args.slice(0, -1).map(say).join('+'),
  words: (options) =>
    Object.keys(options.hash).sort().map((k) => k + '=' + say(options.hash[k])).join(';'),
  self: (...args) => (args.length > 1 ? args[0] : null),
  now: () => 'NOW',
  twice: function (options) {
    return '' + options.fn(this) + options.fn(this);
  },
  choose: function (test, options) {
    return test === true ? options.fn(this) : options.inverse(this);
  },
  solid,
  inside: (given, options) => {
    const value = solid(given);
    const data = Object.assign(Handlebars.createFrame(options.data), { mark: 'M' });
    return options.fn(value, { data, blockParams: [value, 'second'] });
  },
  verbatim: (options) => options.fn({}),
};
const runtime = { helpers, allowProtoPropertiesByDefault: false, allowProtoMethodsByDefault: false };

const plain = Object.prototype.toString;
function printed() {
  // What handlebars.js hands to a block in place of null.
  if (Object.isSealed(this) && Object.keys(this).length === 0) return '';
  return JSON.stringify(this, (key, value) => (value === undefined ? null : value));
}

function answer({ template, data, partials }) {
  try {
    Handlebars.precompile(template, { noEscape: true });
    for (const name of Object.keys(partials)) Handlebars.precompile(partials[name]);
  } catch (error) {
    return { refused: String(error.message) };
  }
  Object.prototype.toString = printed;
  try {
    const render = Handlebars.compile(template, { noEscape: true });
    return { text: render(data, { ...runtime, partials: { ...partials } }) };
  } catch (error) {
    return { failed: String(error.message) };
  } finally {
    Object.prototype.toString = plain;
  }
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  process.stdout.write(JSON.stringify(answer(JSON.parse(line))) + '\n');
});
