# assemble_page.cmake — puts main.css and main.js of FOLDER into TEMPLATE, as FOLDER/page.html.

file(READ ${TEMPLATE} page)
foreach(part css js)
  file(READ ${FOLDER}/main.${part} text)
  string(REPLACE "/*MAIN.${part}*/" "${text}" page "${page}")
endforeach()
file(WRITE ${FOLDER}/page.html "${page}")
