// Asks the search of a built site: `node search.js SITE`, with a JSON list of questions on standard input.
// Runs the program that the pages run, and prints the pages found for each question, best first, as JSON.
const fs = require("fs"), path = require("path"), vm = require("vm");

const site = process.argv[2];
const workers = path.join(site, "assets", "javascripts", "workers");
const program = fs.readdirSync(workers).find(name => /^search\..*\.js$/.test(name));
const index = JSON.parse(fs.readFileSync(path.join(site, "search", "search_index.json")));
const questions = JSON.parse(fs.readFileSync(0));

const [SETUP, READY, QUERY, RESULT] = [0, 1, 2, 3];
const found = [];
let listener;

function ask() {
  if (found.length < questions.length) listener({data: {type: QUERY, data: questions[found.length]}});
  else console.log(JSON.stringify(found));
}

const worker = {
  console,
  addEventListener: (_, called) => { listener = called; },
  postMessage: message => {
    if (message.type === RESULT)
      found.push(message.data.items.map(sections => sections[0].location.split("#")[0])
        .filter((page, place, pages) => pages.indexOf(page) === place));
    if (message.type === READY || message.type === RESULT) ask();
  },
};
worker.self = worker;
vm.runInNewContext(fs.readFileSync(path.join(workers, program), "utf-8"), worker);
listener({data: {type: SETUP, data: {...index, options: {suggest: true}}}});
